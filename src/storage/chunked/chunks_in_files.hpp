// Chunks whose places the caller knows (oocarray/file_chunks.hpp): in the one file that was opened, or in files of
// their own, which can be written, too.
//
// Immutable; any thread may call it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "storage/chunked/chunked_dataset.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/node/plain_file_node.hpp"

namespace ooc::storage {

class chunks_in_files final : public stored_chunks, public chunk_writer {
 public:
  /// Throws usage_error (errc::invalid_request) where table, files and grid of `d` do not go together, or a chunk does
  /// not lie in its file.
  chunks_in_files(std::shared_ptr<const plain_file> file, std::shared_ptr<const chunked_dataset> d);

  std::uint64_t most_stored() const noexcept override { return most_stored_; }
  stored read(std::uint64_t chunk, chunk_decoder& into) const override;
  failure failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading = true) const override;
  const chunk_writer* writer() const noexcept override { return file_->writable ? this : nullptr; }

  // Of chunks that are whole files:

  bool is_there(std::uint64_t chunk) const override;
  failure write(std::uint64_t chunk, std::span<const std::byte> packed) const override;
  failure sync() const override;

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
  const std::shared_ptr<const chunked_dataset> dataset_;
  const file_chunks& chunks_;  // of dataset_, as the next
  const chunk_grid& grid_;
  state opened_;      ///< of file_
  dev_t device_ = 0;  ///< that it is on
  std::uint64_t most_stored_ = 0;
};

}  // namespace ooc::storage
