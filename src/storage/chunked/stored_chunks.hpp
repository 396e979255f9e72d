// Where what is stored of each chunk lies, and how it is read: from the one file that was opened, or from files of its
// own (oocarray/file_chunks.hpp), which can be written, too.
//
// Immutable; any thread may call it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "oocarray/error.hpp"
#include "oocarray/file_chunks.hpp"
#include "storage/chunked/chunk_decoder.hpp"
#include "storage/chunked/chunk_grid.hpp"
#include "storage/node/plain_file_node.hpp"

namespace ooc::storage {

class stored_chunks {
 public:
  /// Throws usage_error (errc::invalid_request) where table, files and grid do not go together, or a chunk does not lie
  /// in its file.
  stored_chunks(std::shared_ptr<const plain_file> file, const file_chunks& c, const chunk_grid& grid);

  /// The most bytes that are read of a chunk.
  std::uint64_t most_stored() const noexcept { return most_stored_; }

  struct stored {
    failure why;                    ///< it could not be read, or its file is another one than it was
    std::uint64_t bytes = 0;        ///< in the decoder's memory; 0: it was never written
    std::uint32_t filter_mask = 0;  ///< as in file_chunk
  };
  stored read(std::uint64_t chunk, chunk_decoder& into) const;

  /// Of chunks that are whole files: whether there is one.
  bool is_there(std::uint64_t chunk) const;
  /// Of those: this is stored of it from now on, all of it or, on failure, nothing.
  failure write(std::uint64_t chunk, std::span<const std::byte> packed) const;
  /// All that was written so becomes durable.
  failure sync() const;

  /// An error about the chunk, which is named with its file, dataset and place.
  failure failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading = true) const;

 private:
  /// Of a file: size and time of change.
  using state = chunk_files::state;
  static state state_of(const struct stat& s);

  std::string name_of(std::uint64_t chunk) const;
  std::uint64_t file_number_of(std::uint64_t chunk) const;
  void check_table() const;
  stored read_part(std::uint64_t chunk, int fd, const state& then, chunk_decoder& into) const;
  stored read_whole_file(std::uint64_t chunk, int fd, chunk_decoder& into) const;

  const std::shared_ptr<const plain_file> file_;
  const file_chunks& chunks_;  // the caller's, as the next
  const chunk_grid& grid_;
  state opened_;      ///< of file_
  dev_t device_ = 0;  ///< that it is on
  std::uint64_t most_stored_ = 0;
};

}  // namespace ooc::storage
