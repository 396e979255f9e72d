// Superblocks of a file as the blocks of a segment.
//
// The memory of superblock s is its box of the file, packed in file order; since the box is one
// nested stride, loading or storing it is one request to the striped file.  Immutable once the file
// is set; any thread.
#pragma once

#include <memory>

#include "oocarray/blocking.hpp"
#include "runtime/blocks/block_source.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::detail {

class superblock_source final : public block_source {
 public:
  explicit superblock_source(blocking b) : blocking_(std::move(b)) {}

  /// Before the first load or store.
  void set_file(std::shared_ptr<const storage::striped_file> file) { file_ = std::move(file); }
  const blocking& shape() const noexcept { return blocking_; }
  const storage::striped_file& file() const noexcept { return *file_; }

  void load(block_index b, load_part part, std::byte* frame, completion done) override;
  void store(block_index b, const std::byte* frame, completion done) override;
  void store_diff(block_index b, const std::byte* frame, const std::byte* twin, completion done) override;
  /// A promise always covers the whole superblock: write_block() makes no other.
  bool nothing_to_load(block_index, load_part part) const noexcept override {
    return part == load_part::outside_promise;
  }

 private:
  storage::request_ptr request_for(block_index b) const;

  blocking blocking_;
  std::shared_ptr<const storage::striped_file> file_;
};

}  // namespace ooc::detail
