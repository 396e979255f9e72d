// What a local node does for each kind of operation, a step at a time on an I/O thread.
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
#include "storage/node/io_worker.hpp"
#include "storage/node/node_folder.hpp"
#include "storage/node/stripe_object_cache.hpp"
#include "storage/node/stripe_object_reader.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/request_scheduler.hpp"

namespace ooc::storage {

enum class io_kind { read, write, create, resize, remove, advance, permit, sync, verify, list };

/// What has become of an operation in a step.
enum class step_result {
  ended,
  parked,           ///< it may be running on another thread already
  to_be_continued,  ///< others first: it is to be queued again
};

/// One call of io_service, from its submission to its completion.
struct operation {
  io_kind kind = io_kind::read;
  request_origin origin;
  shape_ptr file;
  std::uint32_t stripe_index = 0;
  request_ptr wanted;
  std::byte* memory = nullptr;  ///< of a write: only read
  std::optional<io_part> part;  ///< read, write: instead of `wanted`
  std::uint32_t* sums = nullptr;       ///< of the part; of a write: only read
  checking who = checking::here;       ///< read of a part
  std::uint64_t old_size = 0;   ///< resize

  failure result;
  verify_report report;                    ///< verify
  std::vector<file_id> ids;                ///< list
  completion done;                         ///< of all but verify and list
  std::function<void(operation&)> finish;  ///< verify, list: calls the caller's completion

  // Between the steps.
  std::uint64_t next_cost = 0;  ///< of the next step, in bytes; beside those of a part
  std::uint64_t chunk = 0;      ///< verify: the first that was not looked at
  std::uint64_t chunks = 0;     ///< verify: that there are
  bool claimed = false;  ///< the claim has been granted
  std::shared_ptr<stripe_object> target;
  std::vector<region> regions;
  std::uint64_t bytes = 0;  ///< in all regions on the node
  std::vector<bad_chunk> bad;
  chunk_locks::claim claim;
};

using operation_ptr = std::unique_ptr<operation>;

class node_operations {
 public:
  /// `resume` takes a parked operation back into the queue; it may be called from any thread.
  node_operations(std::filesystem::path folder, bool direct_io,
                   std::function<void(operation*)> resume);

  /// Which store the stripe objects are of; before the first operation on one of them.
  void set_store(const store_id& store) {
    if (store_ != store) store_ = store;
  }

  /// Runs `op` until it has ended (`op.result` says how), is parked, or has done what it may do at a
  /// time.
  step_result step(operation& op, io_worker& w);

  /// See page_cache_read.hpp.
  bool read_quickly(const file_shape& f, std::uint32_t stripe_index, const io_part& part,
                    std::byte* memory, std::uint32_t* sums);

  const node_folder& folder() const noexcept { return folder_; }
  node_counters counters;

 private:
  bool read(operation& op, io_worker& w);
  bool write(operation& op, io_worker& w);
  bool advance(operation& op);
  bool sync(operation& op);
  bool resize(operation& op, io_worker& w);
  bool remove(operation& op);
  step_result verify(operation& op, io_worker& w);
  failure create(operation& op);
  failure list(operation& op);
  failure permit(operation& op);

  void delivered(operation& op);
  failure read_claimed(operation& op, io_worker& w);
  failure write_claimed(operation& op, io_worker& w);
  failure resize_claimed(operation& op, io_worker& w);
  failure remove_claimed(operation& op);
  failure verify_claimed(operation& op, io_worker& w);

  bool begin(operation& op, const char* what);
  failure advance_claimed(operation& op);
  object_identity identity(const operation& op) const {
    return identity_of(store_, *op.file, op.stripe_index);
  }
  bool find_regions(operation& op, const char* what);
  bool claim(operation& op, std::vector<chunk_range> ranges, bool exclusive);
  failure reserve(const file_shape& f, const char* what, std::uint64_t bytes);

  // Messages: what was done to which file where, why not, and what helps.
  failure failed(const operation& op, const char* what, int error, const std::string& more = "");
  failure failed(const operation& op, const char* what, const object_error& e);
  failure refused(const operation& op, const char* what, const std::string& why);
  failure damaged(const operation& op, const char* what, const std::string& why);
  std::string chunk_text(const operation& op, const bad_chunk& c);

  const node_folder folder_;
  store_id store_{};
  stripe_object_cache cache_;
  const std::function<void(operation*)> resume_;
};

}  // namespace ooc::storage
