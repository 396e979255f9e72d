// Entries and requests as bytes between the ranks of a group: the messages of the wire.
//
// Decoding throws integrity_error for bytes that are no such message.  Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oocarray/request.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

/// For ranks that are told of a file instead of asking the metadata service for it: without the
/// attributes, and without the capability, which every process must have for itself.
std::vector<std::byte> encode_entry(const entry& e);
entry decode_entry(std::span<const std::byte> bytes);

/// A rank's part of a collective call on a file.
struct rank_request {
  request wanted;
  locality nodes = locality::none;  ///< of the farthest node
  std::uint64_t size = 0;           ///< of the file, as far as the rank knows
};

std::vector<std::byte> encode(const rank_request& r);
rank_request decode_rank_request(std::span<const std::byte> bytes);

}  // namespace ooc::storage
