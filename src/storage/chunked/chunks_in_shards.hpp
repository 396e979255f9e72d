// Chunks in shards: files of several chunks, each with an index that says where they lie in it (chunk_files of
// oocarray/file_chunks.hpp, Zarr's `sharding_indexed`).
//
// The index of a shard is kept as long as its file stays the same one.  What is written is put into a draft of its
// shard, a file without a name beside it, until all chunks of the shard are there, or publish() is called.  Then a new
// file takes the shard's place, with these chunks and those others that the shard has by then:
//
//     in the shard ── write() ──> in the draft ── publish() ──> in the shard
//
// Any thread may call.  Of the locks none is taken by who holds mutex_, and a draft's by nobody who has another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/chunked/chunked_dataset.hpp"
#include "storage/chunked/shard_draft.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/node/plain_file_node.hpp"

namespace ooc::storage {

class chunks_in_shards final : public stored_chunks, public chunk_writer {
 public:
  /// Throws usage_error (errc::invalid_request) where shards and grid of `d` do not go together.
  chunks_in_shards(std::shared_ptr<const plain_file> description, std::shared_ptr<const chunked_dataset> d);

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
  failure publish() override;
  failure sync() override;

 private:
  struct place {
    std::uint64_t shard;  ///< its number, row-major
    std::size_t in_shard;
  };
  /// What a shard has, as long as its file is the same one.
  struct contents {
    file_version of;
    std::vector<file_chunk> chunks;
  };
  using contents_ptr = std::shared_ptr<const contents>;
  using draft_ptr = std::shared_ptr<shard_draft>;

  place place_of(std::uint64_t chunk) const;
  /// How many chunks of the array the shard with this one has.
  std::size_t chunks_beside(std::uint64_t chunk) const;
  /// Of the shard that is open as `fd`, and has this chunk.
  failure find_contents(std::uint64_t chunk, int fd, contents_ptr& found) const OOC_EXCLUDES(mutex_);
  failure read_index(std::uint64_t chunk, int fd, contents& of) const;
  stored read_from(std::uint64_t chunk, int fd, const file_chunk& at, chunk_decoder& into) const;
  /// Null: nothing has been written to it since it was published.
  draft_ptr draft_of(std::uint64_t shard) const OOC_EXCLUDES(mutex_);
  failure begin_draft(std::uint64_t chunk, draft_ptr& made) OOC_EXCLUDES(mutex_);
  /// Puts a new file with what is in the draft in the place of the shard that has this chunk.
  failure publish(std::uint64_t chunk, shard_draft& d) OOC_REQUIRES(d.lock) OOC_EXCLUDES(mutex_);

  const std::shared_ptr<const plain_file> description_;
  const std::shared_ptr<const chunked_dataset> dataset_;
  const std::uint64_t most_stored_;
  const std::vector<std::size_t> in_shard_;  ///< chunks of a shard along each dimension
  std::size_t chunks_of_shard_ = 1;
  std::vector<std::uint64_t> grid_;  ///< chunks of the array along each dimension
  mutable mutex mutex_;
  mutable std::map<std::uint64_t, contents_ptr> contents_ OOC_GUARDED_BY(mutex_);  ///< by shard
  struct begun {
    draft_ptr draft;
    std::uint64_t chunk;  ///< one of the shard
    std::uint64_t turn;   ///< the one with the least was begun first
  };
  std::map<std::uint64_t, begun> drafts_ OOC_GUARDED_BY(mutex_);  ///< by shard
  std::uint64_t turns_ OOC_GUARDED_BY(mutex_) = 0;
};

}  // namespace ooc::storage
