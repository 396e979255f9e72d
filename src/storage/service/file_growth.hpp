// Growth of a file that is written on and on: space for more than is needed now, so that the next writes find it there.
//
// What is reserved past the size is not seen.  Who reserves holds a claim to write the file together with others
// (claim_to_write), and gives the rest back when it lets go of the file; after a process that was
// killed, whoever opens the file for writing next does (store_core::open).  Any thread may call.
#pragma once

#include <cstdint>

#include "storage/service/store_core.hpp"

namespace ooc::storage {

/// The file with at least `size` visible bytes, as store_core::grow(): where its stripe objects are too short they get
/// as much again, 16 MiB to 4 GiB, or what is needed if there is no space for that.
opened_file grow_ahead(store_core& store, const opened_file& f, std::uint64_t size);

/// The same for the stripe objects only; the visible size stays, as by store_core::reserve().
opened_file reserve_ahead(store_core& store, const opened_file& f, std::uint64_t end);

/// As metadata_service::claim_writer(); waits for who is giving back (store_core::give_back), which is in nobody's way.
/// For files of a store.
std::shared_ptr<void> claim_to_write(store_core& store, file_id id, bool together, claim_holder* in_the_way = nullptr);

}  // namespace ooc::storage
