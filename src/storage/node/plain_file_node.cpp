// See plain_file_node.hpp.
//
// Operations are jobs of threads (job_threads.hpp), each of which has engines and lists of its own.  Destruction waits
// for all that was submitted; a completion may drop the last reference to the node.
#include "storage/node/plain_file_node.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "storage/base/job_threads.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/page.hpp"
#include "storage/layout/regions.hpp"
#include "storage/object/transfer.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {
namespace {

/// The engines that one thread owns.
struct plain_worker {
  explicit plain_worker(bool io_uring) : engine(make_transfer_engine(io_uring)), copier(make_plain_engine()) {}

  std::unique_ptr<transfer_engine> engine;
  std::unique_ptr<transfer_engine> copier;  ///< for writes to the page cache
  std::vector<region> regions;
  transfer_list direct, buffered;

  void forget_batch() noexcept {
    direct.clear();
    buffered.clear();
  }
};

class plain_transfers {
 public:
  plain_transfers(std::shared_ptr<const plain_file> file, bool io_uring)
      : file_(std::move(file)), io_uring_(io_uring), direct_(static_cast<bool>(file_->direct)) {}

  failure run(const node_call& op, std::optional<plain_worker>& w) {
    try {
      if (op.kind == io_kind::sync) return sync();
      if (!w) w.emplace(io_uring_);
      return carry_out(op, *w);
    } catch (const std::bad_alloc&) {
      if (w) w->forget_batch();  // its memory goes, and who works here next would have it run
      return out_of_memory();
    }
  }
  const plain_file& file() const noexcept { return *file_; }

  node_counters counters;

 private:
  static constexpr std::size_t batch_extents = 1024;

  failure carry_out(const node_call& op, plain_worker& w) {
    const bool reads = op.kind == io_kind::read;
    counters.add(reads ? &io_stats::read_requests : &io_stats::write_requests, 1);
    object_regions(*op.wanted, op.file->striping, 0, w.regions);
    if (w.regions.empty()) return {};
    counters.add(reads ? &io_stats::read_regions : &io_stats::write_regions, node_runs(w.regions));
    if (!reads) {
      if (!file_->writable) return failed(reads, EBADF, 0);
      if (overlap(w.regions))
        return {errc::invalid_request, "writing '" + file_->path + "': regions of the request overlap in the file"};
      // A write past the end would make the file longer, with zeros in between.
      if (const failure f = still_there(op.wanted->file_end(), reads)) return f;
    }
    std::uint64_t bytes = 0;
    for (const region& p : w.regions) {
      plan(p, op.memory, w);
      bytes += p.length;
      if (w.direct.extents.size() + w.buffered.extents.size() >= batch_extents)
        if (const failure f = flush(reads, w)) return f;
    }
    if (const failure f = flush(reads, w)) return f;
    // Reading past the end gives zeros: look whether there was one, now that it is done.
    if (reads)
      if (const failure f = still_there(op.wanted->file_end(), reads)) return f;
    counters.add(reads ? &io_stats::bytes_read : &io_stats::bytes_written, bytes);
    return {};
  }

  void plan(const region& p, std::byte* memory, plain_worker& w) const {
    std::uint64_t at = file_->begin + p.node_offset, left = p.length;
    std::byte* to = memory + p.memory_offset;
    const auto add = [&](transfer_list& list, std::uint64_t bytes) {
      list.add(at, to, bytes);
      at += bytes;
      to += bytes;
      left -= bytes;
    };
    const std::uint64_t within = at % page_bytes;
    if (direct_.load(std::memory_order_relaxed) && reinterpret_cast<std::uintptr_t>(to) % page_bytes == within) {
      if (within != 0) add(w.buffered, std::min(left, page_bytes - within));
      add(w.direct, left / page_bytes * page_bytes);
    }
    add(w.buffered, left);
  }

  failure flush(bool reads, plain_worker& w) {
    const direction d = reads ? direction::read : direction::write;
    const int file = file_->file.get();
    if (!w.direct.extents.empty()) {
      w.engine->run(file_->direct.get(), d, w.direct);
      bool refused = false;
      for (transfer& t : w.direct.extents)
        if (t.error == EINVAL) {
          t.error = 0;
          refused = true;
        }
      if (refused) {  // the file system takes O_DIRECT when it opens, and not when it transfers
        direct_ = false;
        w.engine->run(file, d, w.direct);
      }
    }
    (reads ? w.engine : w.copier)->run(file, d, w.buffered);
    failure result;
    for (transfer_list* list : {&w.direct, &w.buffered}) {
      std::uint64_t bytes = 0;
      for (const transfer& t : list->extents) {
        bytes += t.done;
        if (t.error != 0 && !result) result = failed(reads, t.error, t.offset + t.done);
      }
      counters.add(reads ? &io_stats::device_reads : &io_stats::device_writes, list->extents.size());
      counters.add(reads ? &io_stats::device_bytes_read : &io_stats::device_bytes_written, bytes);
      list->clear();
    }
    return result;
  }

  /// Whether the file has the bytes up to `end`, counted from its data.
  failure still_there(std::uint64_t end, bool reads) const {
    struct stat now {};
    if (::fstat(file_->file.get(), &now) != 0) return failed(reads, errno, 0);
    const auto has = static_cast<std::uint64_t>(now.st_size);
    if (has >= file_->begin + end) return {};
    return {std::make_error_code(std::errc::io_error),
            std::string(reads ? "reading" : "writing") + " '" + file_->path +
                "': somebody has cut the file off: it has " + std::to_string(has) +
                " bytes now, and the array reaches to byte " + std::to_string(file_->begin + end) + " there"};
  }

  failure sync() {
    counters.add(&io_stats::syncs, 1);
    if (!file_->writable) return {};
    const lock_guard lock(syncing_);
    // The kernel tells a failure once, and one of those who ask at once: what it was for may be lost, whatever a later
    // sync says.
    if (sync_failed_ == 0 && ::fdatasync(file_->file.get()) != 0) sync_failed_ = errno;
    if (sync_failed_ == 0) return {};
    const std::error_code code(sync_failed_, std::generic_category());
    return {code, "syncing '" + file_->path + "': " + code.message()};
  }

  // Without the text where there is not even memory for that.
  failure out_of_memory() const noexcept {
    const auto code = std::make_error_code(std::errc::not_enough_memory);
    try {
      return {code, "'" + file_->path + "': " + code.message()};
    } catch (const std::bad_alloc&) {
      return {code, {}};
    }
  }

  failure failed(bool reads, int error, std::uint64_t at) const {
    const std::error_code code(error, std::generic_category());
    return {code, std::string(reads ? "reading" : "writing") + " '" + file_->path + "' at byte " + std::to_string(at) +
                      ": " + code.message()};
  }

  const std::shared_ptr<const plain_file> file_;
  const bool io_uring_;
  std::atomic<bool> direct_;
  mutex syncing_;
  int sync_failed_ OOC_GUARDED_BY(syncing_) = 0;
};

class plain_file_node final : public in_place_node {
 public:
  plain_file_node(std::shared_ptr<const plain_file> file, const plain_file_options& options)
      : transfers_(std::make_shared<plain_transfers>(std::move(file), options.io_uring)), threads_(options.workers) {}

  std::string name() const override { return transfers_->file().path; }
  io_stats stats() const override { return transfers_->counters.snapshot(); }
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  void carry_out(node_call call, completion done) override {
    threads_.post([call = std::move(call), done = std::move(done),
                   transfers = transfers_](std::optional<plain_worker>& w) { done(transfers->run(call, w)); });
  }

  const std::shared_ptr<plain_transfers> transfers_;  // outlives the node where a completion ends it
  job_threads<std::optional<plain_worker>> threads_;
};

}  // namespace

void in_place_node::answer(node_call call, completion done) {
  switch (call.kind) {
    case io_kind::read:
    case io_kind::write:
    case io_kind::sync: return carry_out(std::move(call), std::move(done));
    // The file is there already, whoever opens it, and nobody counts openings.
    case io_kind::advance:
    case io_kind::permit:
    case io_kind::list:
    case io_kind::find_locality: return done({});
    case io_kind::create: return done(refusal("made"));
    case io_kind::resize: return done(refusal("resized"));
    case io_kind::remove: return done(refusal("removed"));
    case io_kind::prepare: return done(refusal("committed"));
    case io_kind::roll_back: return done(refusal("rolled back"));
    case io_kind::find_changes: return done(refusal("asked for changes"));
    case io_kind::trim: return done(refusal("trimmed"));
    case io_kind::clone: return done(refusal("shared"));
    case io_kind::verify: return done(refusal("verified: it has no checksums, and cannot be"));
  }
}

failure in_place_node::refusal(const char* what) const {
  return {errc::invalid_request, "'" + name() + "' is no file of a store, and is not " + what};
}

std::shared_ptr<io_service> make_plain_file_node(std::shared_ptr<const plain_file> file,
                                                 const plain_file_options& options) {
  return std::make_shared<plain_file_node>(std::move(file), options);
}

}  // namespace ooc::storage
