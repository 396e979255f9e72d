// The steps of each kind of operation on a local node, run one at a time on an I/O thread.
//
// An operation whose chunks are claimed by another is parked between two steps, holding no thread
// and no other lock; it is handed to `resume` when its claim has been granted.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "storage/layout/io_part.hpp"
#include "storage/node/commit_operations.hpp"
#include "storage/node/commit_steps.hpp"
#include "storage/node/late_objects.hpp"
#include "storage/node/node_messages.hpp"
#include "storage/node/operation.hpp"
#include "storage/object/io_worker.hpp"
#include "storage/object/stripe_object_cache.hpp"
#include "storage/object/stripe_object_reader.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/request_scheduler.hpp"

namespace ooc::storage {

/// The outcome of a step of an operation.
enum class step_result {
  ended,
  parked,           ///< it may be running on another thread already
  to_be_continued,  ///< others first: it is to be queued again
};

/// Places (object/sides.hpp) that the file has on this node.
inline std::uint64_t places_of_file(const operation& op) {
  const std::uint64_t chunks = in_chunks(op.file->striping.object_size(op.stripe_index, op.file->size));
  return op.file->commits ? places_for(chunks) : chunks;
}

class node_operations : private node_messages {
 public:
  /// `resume` takes a parked operation back into the queue; it may be called from any thread.
  node_operations(std::filesystem::path folder, bool direct_io, std::function<void(operation*)> resume);

  /// Which store the stripe objects are of; before the first operation on one of them.
  void set_store(const store_id& store) {
    if (store_ != store) store_ = store;
  }

  /// Runs `op` until it has ended (`op.result` says how), is parked, or has done what it may do at a
  /// time.
  step_result step(operation& op, io_worker& w);

  /// See small_reads.hpp.
  bool read_inline(const file_shape& f, std::uint32_t stripe_index, const io_part& part, std::byte* memory,
                   std::uint32_t* sums);

  /// See immediate_reader.
  bool read_inline(const file_shape& f, std::uint32_t stripe_index, std::uint64_t node_offset, std::byte* memory,
                   std::size_t bytes) noexcept;

  /// Closes what another process has removed, whose space is free only then.
  void close_removed() { cache_.close_removed(); }

  /// Checks the arguments and opens the stripe object; false: the operation has ended.
  bool begin(operation& op);
  /// False: parked, and `op` is no longer the caller's.
  bool claim(operation& op, std::vector<chunk_range> ranges, bool exclusive);

  const node_folder& folder() const noexcept { return folder_; }
  const store_id& store() const noexcept { return store_; }
  node_counters counters;

 private:
  bool read(operation& op, io_worker& w);
  bool write(operation& op, io_worker& w);
  bool advance(operation& op);
  bool sync(operation& op);
  bool resize(operation& op, io_worker& w);
  bool remove(operation& op);
  step_result verify(operation& op, io_worker& w);
  failure create(operation& op, bool durably = false);
  failure permit(operation& op);

  void delivered(operation& op);
  failure read_claimed(operation& op, io_worker& w);
  failure write_claimed(operation& op, io_worker& w);
  failure resize_claimed(operation& op, io_worker& w);
  failure remove_files(operation& op);
  failure verify_claimed(operation& op, io_worker& w);
  failure sync_claimed(operation& op);

  failure advance_claimed(operation& op);
  /// Whether a loss of power may have taken the stripe object of a file of that generation.
  bool may_have_lost(const operation& op, std::uint64_t generation);
  failure make_again(operation& op, std::uint64_t generation);
  object_identity identity(const operation& op) const { return identity_of(store_, *op.file, op.stripe_index); }
  bool find_regions(operation& op);

  store_id store_{};
  commit_operations commits_;
  stripe_object_cache cache_;
  commit_steps commit_steps_;
  late_objects late_;
  const std::function<void(operation*)> resume_;
};

}  // namespace ooc::storage
