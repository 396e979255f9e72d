// A collective read or write of one file: each rank its own request, all at once.
#pragma once

#include "storage/collective/strategy.hpp"
#include "storage/collective/two_phase_exchange.hpp"

namespace ooc::storage {

/// Bytes that all ranks together transfer at a time, unless memory is short.
inline constexpr std::uint64_t default_round_bytes = std::uint64_t{16} << 20;

/// Collective over t.group.  Returns when every rank has been served.  Where a transfer fails on
/// any rank, throws the same on all; what was read is then undefined, what was written is old or
/// new, chunk by chunk.
void transfer_collectively(const striped_file& file, const collective_transfer& t, strategy how);

/// Collective: throws usage_error (errc::conflict) on all ranks, naming ranks and bytes, where two
/// regions of t.wanted overlap.
void check_disjoint(const striped_file& file, const collective_transfer& t);

}  // namespace ooc::storage
