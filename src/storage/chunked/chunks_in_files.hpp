// Chunks that are files of their own (chunk_files of oocarray/file_chunks.hpp), which are replaced whole.
//
// Immutable; any thread may call it.
#pragma once

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
  chunks_in_files(std::shared_ptr<const plain_file> description, std::shared_ptr<const chunked_dataset> d);

  std::uint64_t most_stored() const noexcept override { return most_stored_; }
  stored read(std::uint64_t chunk, chunk_decoder& into) const override;
  void will_read(std::uint64_t chunk) const noexcept override;
  failure failed(std::uint64_t chunk, std::error_code code, const std::string& why,
                 bool reading = true) const override {
    return dataset_->failed(dataset_->file_of(chunk), chunk, code, why, reading);
  }
  chunk_writer* writer() noexcept override { return description_->writable ? this : nullptr; }

  bool is_there(std::uint64_t chunk) override;
  failure write(std::uint64_t chunk, std::span<const std::byte> packed) override;
  failure sync() override;

 private:
  const std::shared_ptr<const plain_file> description_;
  const std::shared_ptr<const chunked_dataset> dataset_;
  const std::uint64_t most_stored_;
};

/// All that was written to files below `d` becomes durable.
failure sync_files_of(const chunked_dataset& d, const plain_file& description);
/// The most that a file can have of a chunk.
std::uint64_t most_stored_of(const chunked_dataset& d) noexcept;

}  // namespace ooc::storage
