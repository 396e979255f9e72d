// Chunks whose places the caller knows (oocarray/file_chunks.hpp): in the one file that was opened, or in several with
// names of their own.  They are only read.
//
// Immutable; any thread may call it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "storage/chunked/chunked_dataset.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/node/plain_file_node.hpp"

namespace ooc::storage {

class chunks_by_table final : public stored_chunks {
 public:
  /// Throws usage_error (errc::invalid_request) where table, files and grid of `d` do not go together, or a chunk does
  /// not lie in its file.
  chunks_by_table(std::shared_ptr<const plain_file> file, std::shared_ptr<const chunked_dataset> d);

  std::uint64_t most_stored() const noexcept override { return most_stored_; }
  stored read(std::uint64_t chunk, chunk_decoder& into) const override;
  void will_read(std::uint64_t chunk) const noexcept override;
  failure failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading = true) const override;

 private:
  /// Of a file: size and time of change.
  using state = chunk_files::state;

  static state state_of(const struct stat& s);
  void check() const;
  const std::string& name_of(std::uint64_t chunk) const;
  /// Whether what is stored ends where the array does, and not where the chunk does.
  bool is_cut_short(std::uint64_t chunk) const;
  stored read_part(std::uint64_t chunk, int fd, const state& then, chunk_decoder& into) const;

  const std::shared_ptr<const plain_file> file_;
  const std::shared_ptr<const chunked_dataset> dataset_;
  const file_chunks& chunks_;  // of dataset_
  state opened_;               ///< of file_
  std::uint64_t most_stored_ = 0;
};

}  // namespace ooc::storage
