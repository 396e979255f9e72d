// The chunks of one dataset, unpacked: those that were decoded lately are kept, and, where the dataset is written to,
// those that have been changed until they are packed and their files written.
//
// A chunk is packed when all of it has been written to, when too many others have been changed since, and by clean().
// What a thread needs for all this is its chunk_worker.
//
// Any thread may call.  Failures name file, dataset and chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/chunked/changed_chunks.hpp"
#include "storage/chunked/chunk_buffers.hpp"
#include "storage/chunked/chunk_decoder.hpp"
#include "storage/chunked/chunk_encoder.hpp"
#include "storage/chunked/chunked_dataset.hpp"
#include "storage/chunked/decoded_chunks.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {

struct chunk_worker {
  chunk_decoder decoder;
  std::optional<chunk_encoder> encoder;  ///< where the dataset is written to
};

/// How many chunks may be in memory.
struct chunk_memory {
  unsigned threads = 1;       ///< each of which works on one
  std::uint64_t kept = 0;     ///< beside
  std::uint64_t changed = 0;  ///< of those, that have been changed; each thread may add one
  std::uint64_t bytes = 0;    ///< of all
};

class chunk_source {
 public:
  /// Where half of the budget is not enough for a thread and its chunks, throws usage_error (errc::budget_too_small),
  /// which names the least that is.
  chunk_source(std::shared_ptr<const chunked_dataset> d, std::unique_ptr<stored_chunks> stored, std::uint64_t budget);

  const chunk_grid& grid() const noexcept { return grid_; }
  const chunk_memory& memory() const noexcept { return memory_; }
  chunk_worker worker() const;
  bool writable() const noexcept { return writer_ != nullptr; }

  /// Has `use` called with the chunk: now, or later by another thread that is decoding it.  Null: it was never written.
  /// `use` returns its failure, and `done` is called with the first one.  Throws std::bad_alloc, and has nothing called
  /// then.
  void read(std::uint64_t chunk, chunk_worker& w, std::function<failure(const std::byte*)> use,
            std::function<void(const failure&)> done);
  /// read() of it follows soon.
  void will_read(std::uint64_t chunk) {
    if (!decoded_.has(key_of(chunk))) places_->will_read(chunk);
  }
  /// What is written to a chunk.
  struct change {
    std::uint64_t bytes = 0;
    std::function<bool(const std::byte* chunk)> is_there;  ///< whether it has all these bytes already
    std::function<void(std::byte* chunk)> put;
  };
  /// `complete`: whether all of the chunk has been written to since it was packed; the caller is to clean() it then.
  failure write(std::uint64_t chunk, chunk_worker& w, const change& c, bool& complete);
  /// Packs it and writes its file, if it has been changed; on failure it stays changed.
  failure clean(std::uint64_t chunk, chunk_worker& w);
  std::vector<std::uint64_t> changed() const { return changed_ ? changed_->all() : std::vector<std::uint64_t>{}; }
  /// What clean() has written can be read by others from now on.
  failure publish() { return writer_ ? writer_->publish() : failure{}; }
  /// What was published becomes durable.  A failure is final.
  failure sync();
  /// What was decoded is decoded again from now on, as other processes may have written it.
  void forget() noexcept { age_.fetch_add(1, std::memory_order_relaxed); }

  /// Gives bytes of a chunk that was never written, the first of which is `in_chunk`, their values.
  void fill(std::span<std::byte> to, std::uint64_t in_chunk = 0) const {
    fill_with(dataset_->chunks.fill, in_chunk, to);
  }

  failure no_memory(std::uint64_t chunk) const {
    return places_->failed(chunk, {ENOMEM, std::generic_category()},
                           "cannot be read or written: there is no memory for it");
  }

  node_counters counters;

 private:
  chunk_memory memory_for(std::uint64_t budget) const;
  void get(std::uint64_t chunk, chunk_worker& w, decoded_chunks::user use);
  /// Where nobody else decodes it meanwhile.
  failure get_now(std::uint64_t chunk, chunk_worker& w, decoded_chunks::bytes& found);
  /// For one that has not been changed yet.  `whole`: all of it will be.  `holds`: memory for it, which has what the
  /// chunk holds if `known`.
  failure begin_change(std::uint64_t chunk, chunk_worker& w, bool whole, changed_chunks::bytes& holds, bool& known);
  failure decode(std::uint64_t chunk, chunk_decoder& d, std::span<std::byte> to);
  failure make_room_for(std::uint64_t chunk, chunk_worker& w);
  /// What decoded_ knows it by: another number after each forget().
  std::uint64_t key_of(std::uint64_t chunk) const noexcept {
    return age_.load(std::memory_order_relaxed) * grid_.chunks() + chunk;
  }

  const std::shared_ptr<const chunked_dataset> dataset_;
  const chunk_grid& grid_;  // of dataset_
  const std::unique_ptr<stored_chunks> places_;
  chunk_writer* const writer_;
  const chunk_memory memory_;
  chunk_buffers buffers_;
  decoded_chunks decoded_;
  std::optional<changed_chunks> changed_;
  std::atomic<std::uint64_t> age_{0};
  mutex sync_mutex_;
  failure sync_failed_ OOC_GUARDED_BY(sync_mutex_);
};

}  // namespace ooc::storage
