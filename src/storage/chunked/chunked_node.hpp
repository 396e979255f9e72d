// A dataset in chunks as an I/O node with one file: its bytes are those of the dataset in
// row-major order.
//
// A read decodes the chunks that it meets, each once however many reads meet it, on several threads, and keeps as many
// decoded ones as it may.  A chunk that cannot be read or decoded, or a file that has changed since it was opened, is
// an error that names file, dataset and chunk.  Where chunks are files of their own, what is written
// to them is in the files after flush().
//
// Threads and completions as in io_service.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "oocarray/file_chunks.hpp"
#include "storage/chunked/chunk_source.hpp"
#include "storage/layout/array_description.hpp"
#include "storage/node/plain_file_node.hpp"

namespace ooc::storage {

std::shared_ptr<io_service> make_chunked_node(std::string name, std::shared_ptr<chunk_source> source);

/// Of a file in place.  Throws usage_error (errc::invalid_request) where `chunks` does not go with the array or the
/// file. `budget`: of all arrays of the process.  Where half of it is not enough for a thread and its chunks, throws
/// usage_error (errc::budget_too_small), which names the least that is.
std::shared_ptr<io_service> make_chunked_node(std::shared_ptr<const plain_file> file, const array_description& array,
                                              file_chunks chunks, std::uint64_t budget);

}  // namespace ooc::storage
