// How an array of a store is packed: the text in its entry (entry::codec), and what it means.
//
//     shuffle+zstd:3/524288       filters in the order in which they are applied, the last with its level; bytes of a chunk
//
// Functions without state; any thread may call them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "oocarray/store.hpp"
#include "storage/chunked/chunked_dataset.hpp"
#include "storage/service/entry.hpp"

namespace ooc::storage {

/// The text for what a user wants of an array with elements and a file of these sizes.  Throws usage_error
/// (errc::invalid_request), naming what there is, where this build has no such codec, or the codec no such level.
std::string codec_text(const pack_options& how, std::uint32_t element_size, std::uint64_t file_bytes);

/// The file of a packed array as one row of elements in chunks.  Throws usage_error (errc::type_mismatch) where the
/// text of its entry names what this build does not know or have.
chunked_dataset packed_dataset(const entry& e);

}  // namespace ooc::storage
