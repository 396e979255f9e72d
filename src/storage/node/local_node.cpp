// The pool of I/O threads of a local node and its front, an io_service.
//
// Two schedulers: one for reads and writes, one for upkeep, which may take long (a sync, reserving
// space, a verification, which goes in slices).  Upkeep has at most half of the threads at a time, so
// that reads and writes are never without one.  Threads are started when there is work and none is
// idle, up to the limit, and each runs one operation at a time.  A parked operation is owned by its
// stripe object's chunk_locks (as a raw pointer) until it comes back, before all that wait for their turns.
//
// One mutex, for all of the queue; no other lock is taken while it is held.
//
// An operation for which memory is wanting fails (ENOMEM) and gives back what it has claimed.  Nothing else needs
// memory: neither what ends an operation, nor what lets those go on that waited for it.
//
// Destruction waits for every operation that was submitted.  A completion may drop the last
// reference to the node: then the thread it runs on is left to end by itself.
#include "storage/node/local_node.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "storage/base/file_access.hpp"
#include "storage/base/file_size_signal.hpp"
#include "storage/base/mutex.hpp"
#include "storage/node/node_operations.hpp"

namespace ooc::storage {
namespace {

class thread_pool : public std::enable_shared_from_this<thread_pool> {
 public:
  thread_pool(const std::filesystem::path& folder, const local_node_options& options)
      : options_(options), operations_(folder, options.direct_io, [this](operation* op) { enqueue_first(op); }) {
    operations_.set_store(store_id_from(options.store));
  }

  // Where there is no thread that could take it, nor memory to queue it, it has failed.
  void submit(operation_ptr op) {
    try {
      const lock_guard lock(mutex_);
      wake(waiting() + 1);
      add(std::move(op));
      ++open_;
      return;
    } catch (const std::system_error& e) {
      op->result = {e.code(), "node " + operations_.folder().path().string() + ": " + e.what()};
    } catch (const std::bad_alloc&) {
      op->result = out_of_memory();
    }
    op->done(op->result);
  }

  served_node::load present_load() const {
    const lock_guard lock(mutex_);
    return {waiting(), running_};
  }

  // Returns when everything has been done and, unless called on one of them, no thread is left.
  void stop() {
    std::vector<std::thread> threads;
    {
      unique_lock lock(mutex_);
      stopping_ = true;
      work_.notify_all();
      threads.swap(threads_);
    }
    for (std::thread& t : threads) {
      if (t.get_id() == std::this_thread::get_id())
        t.detach();
      else
        t.join();
    }
  }

  const local_node_options& options() const noexcept { return options_; }
  node_operations& operations() noexcept { return operations_; }

 private:
  static bool is_upkeep(const operation& op) noexcept { return op.kind != io_kind::read && op.kind != io_kind::write; }

  std::uint64_t waiting() const noexcept OOC_REQUIRES(mutex_) {
    return resumed_count_ + transfers_.waiting() + upkeep_.waiting();
  }

  void add(operation_ptr&& op) OOC_REQUIRES(mutex_) {
    const client_number who = op->origin.client;
    const bool placed = op->part && !op->part->regions.empty();
    const request_scheduler<operation_ptr>::place where{placed ? op->file->id : 0,
                                                        placed ? op->part->regions.front().node_offset : 0};
    const std::uint64_t cost = placed ? op->part->bytes : op->next_cost;
    (is_upkeep(*op) ? upkeep_ : transfers_).add(who, where, cost, std::move(op));
  }

  // Nothing where nothing waits, or only upkeep that has its threads already.
  operation_ptr take() OOC_REQUIRES(mutex_) {
    if (resumed_ != nullptr) {
      operation_ptr op(resumed_);
      resumed_ = op->next_resumed;
      --resumed_count_;
      return op;
    }
    const bool may_upkeep = upkeep_running_ < std::max(1u, options_.workers / 2);
    // Turn and turn about, for a node with one thread.
    upkeep_next_ = !upkeep_next_;
    auto op = may_upkeep && upkeep_next_ ? upkeep_.next() : transfers_.next();
    if (!op) op = transfers_.next();
    if (!op && may_upkeep) op = upkeep_.next();
    return op ? std::move(*op) : nullptr;
  }

  // For the last of `queued` operations.
  void wake(std::size_t queued) OOC_REQUIRES(mutex_) {
    work_.notify_one();
    // An idle thread that was told of earlier work is not free for this.
    if (queued <= idle_ || threads_.size() >= options_.workers || stopping_) return;
    try {
      threads_.emplace_back([self = shared_from_this()] { self->work(); });
    } catch (const std::exception&) {
      if (threads_.empty()) throw;  // otherwise those that there are do the work
    }
  }

  // Needs no memory: one thread is there, which calls it.
  void enqueue_first(operation* op) noexcept {
    lock_guard lock(mutex_);
    op->next_resumed = resumed_;
    resumed_ = op;
    ++resumed_count_;
    wake(waiting());
  }

  void work() {
    block_file_size_signal();
    std::optional<io_worker> worker;  // made by the first operation: where memory is wanting, that one fails
    unique_lock lock(mutex_);
    for (;;) {
      operation_ptr op = take();
      if (!op) {
        // Parked operations come back through the queue: stay until all have ended.
        if (stopping_ && open_ == 0) return;
        ++idle_;
        const bool woken = work_.wait_until(lock, looked_ + look_for_removed) == std::cv_status::no_timeout;
        --idle_;
        const auto now = clock::now();
        if (woken || now < looked_ + look_for_removed) continue;
        looked_ = now;
        const unlocked others(lock, mutex_);
        close_removed();
        continue;
      }
      assert(waiting() < open_ && threads_.size() <= options_.workers);
      const bool upkeep = is_upkeep(*op);
      upkeep_running_ += upkeep;
      ++running_;
      lock.unlock();
      // Parked, it is no longer ours.
      operation* const one = op.release();
      const step_result how = run(*one, worker);
      lock.lock();
      --running_;
      upkeep_running_ -= upkeep;
      // Upkeep that waited because upkeep had its share of the threads can go on now.
      if (upkeep && !upkeep_.empty()) work_.notify_one();
      if (how == step_result::parked) continue;
      op.reset(one);
      if (how == step_result::to_be_continued && queued_again(op)) continue;
      lock.unlock();
      finish(std::move(op));
      lock.lock();
    }
  }

  // False: it has failed.
  bool queued_again(operation_ptr& op) OOC_REQUIRES(mutex_) {
    try {
      add(std::move(op));
      return true;
    } catch (const std::bad_alloc&) {
      op->result = out_of_memory();
      return false;
    }
  }

  void close_removed() noexcept {
    try {
      operations_.close_removed();
    } catch (const std::bad_alloc&) {
      // The next time.
    }
  }

  void finish(operation_ptr op) {
    op->target.reset();
    op->copy.reset();
    {
      // Before the completion: it may drop the node and wait for the other threads.
      lock_guard lock(mutex_);
      assert(open_ > 0);
      if (--open_ == 0 && stopping_) work_.notify_all();
    }
    op->done(op->result);
  }

  // Without the text where there is not even memory for that.
  failure failed(std::errc why, const std::exception* e = nullptr) const noexcept {
    const auto code = std::make_error_code(why);
    try {
      return {code, "node " + operations_.folder().path().string() + ": " + (e ? e->what() : code.message())};
    } catch (const std::bad_alloc&) {
      return {code, {}};
    }
  }
  failure out_of_memory() const noexcept { return failed(std::errc::not_enough_memory); }

  step_result run(operation& op, std::optional<io_worker>& worker) {
    try {
      if (!op.claimed && op.origin.gone.stop_requested()) {
        op.result = {std::make_error_code(std::errc::operation_canceled),
                     "node " + operations_.folder().path().string() + ": its client has gone"};
        return step_result::ended;
      }
      if (!worker) worker.emplace(options_.staging, options_.io_uring, operations_.counters);
      return operations_.step(op, *worker);
    } catch (const std::bad_alloc&) {
      return give_up(op, worker, out_of_memory());
    } catch (const std::exception& e) {
      // Nothing is meant to throw anything else; what does it all the same need not end the process.
      return give_up(op, worker, failed(std::errc::io_error, &e));
    }
  }

  // Others wait for its chunks; and the batch that it had begun is of its memory.
  static step_result give_up(operation& op, std::optional<io_worker>& worker, failure why) noexcept {
    if (op.claimed) op.target->chunks().unlock(op.claim);
    if (worker) worker->forget_batch();
    op.result = std::move(why);
    return step_result::ended;
  }

  using clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds look_for_removed{5};  // where there is nothing else to do
  static constexpr std::uint64_t quantum = 1 << 20;           // bytes
  static constexpr std::uint64_t least_cost = 4096;           // what a request costs beside its bytes

  const local_node_options options_;
  node_operations operations_;
  mutable mutex mutex_;
  condition_variable work_;
  operation* resumed_ OOC_GUARDED_BY(mutex_) = nullptr;  // owned; the others follow as next_resumed
  std::uint64_t resumed_count_ OOC_GUARDED_BY(mutex_) = 0;
  request_scheduler<operation_ptr> transfers_ OOC_GUARDED_BY(mutex_){quantum, least_cost};
  request_scheduler<operation_ptr> upkeep_ OOC_GUARDED_BY(mutex_){quantum, least_cost};
  std::vector<std::thread> threads_ OOC_GUARDED_BY(mutex_);
  unsigned idle_ OOC_GUARDED_BY(mutex_) = 0;
  clock::time_point looked_ OOC_GUARDED_BY(mutex_) = clock::now();  // what others have removed
  unsigned running_ OOC_GUARDED_BY(mutex_) = 0;
  unsigned upkeep_running_ OOC_GUARDED_BY(mutex_) = 0;
  bool upkeep_next_ OOC_GUARDED_BY(mutex_) = false;
  // Submitted and not yet ended, queued and parked ones included.
  std::uint64_t open_ OOC_GUARDED_BY(mutex_) = 0;
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
};

class reader_in_calling_thread final : public immediate_reader {
 public:
  reader_in_calling_thread(std::shared_ptr<thread_pool> pool, shape_ptr file, std::uint32_t stripe_index)
      : pool_(std::move(pool)), file_(std::move(file)), stripe_index_(stripe_index) {}
  bool read(std::uint64_t node_offset, std::byte* memory, std::size_t bytes) const noexcept override {
    return pool_->operations().read_inline(*file_, stripe_index_, node_offset, memory, bytes);
  }

 private:
  const std::shared_ptr<thread_pool> pool_;
  const shape_ptr file_;
  const std::uint32_t stripe_index_;
};

class local_io_service final : public served_node {
 public:
  local_io_service(const std::filesystem::path& folder, const local_node_options& options)
      : pool_(std::make_shared<thread_pool>(folder, options)) {}
  local_io_service(const local_io_service& node, request_origin origin)
      : pool_(node.pool_), origin_(std::move(origin)), for_others_(true) {}
  ~local_io_service() override {
    if (for_others_) return;
    if (::getpid() == owner_)
      pool_->stop();
    else
      new std::shared_ptr<thread_pool>(pool_);  // a forked child has none of the threads: leave them be
  }

  std::shared_ptr<served_node> on_behalf_of(request_origin origin) override {
    return std::make_shared<local_io_service>(*this, std::move(origin));
  }
  load present_load() const override { return pool_->present_load(); }

  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::find_locality) return done({});  // the answer is made for it
    pool_->submit(make(std::move(call), std::move(done)));
  }

  std::shared_ptr<const immediate_reader> reader_of(shape_ptr file, std::uint32_t stripe_index) override {
    return std::make_shared<reader_in_calling_thread>(pool_, std::move(file), stripe_index);
  }

  void read_part(shape_ptr file, std::uint32_t stripe_index, io_part part, std::byte* memory, std::uint32_t* sums,
                 checking who, completion done) override {
    auto op = make({io_kind::read, std::move(file), stripe_index, {}, memory}, std::move(done));
    op->part = std::move(part);
    op->sums = sums;
    op->who = who;
    pool_->submit(std::move(op));
  }

  bool read_inline(const file_shape& file, std::uint32_t stripe_index, const io_part& part, std::byte* memory,
                   std::uint32_t* sums) override {
    return pool_->operations().read_inline(file, stripe_index, part, memory, sums);
  }

  void set_store(const std::string& uuid) override { pool_->operations().set_store(store_id_from(uuid)); }

  void write_part(shape_ptr file, std::uint32_t stripe_index, io_part part, const std::byte* memory,
                  const std::uint32_t* sums, completion done) override {
    auto op =
        make({io_kind::write, std::move(file), stripe_index, {}, const_cast<std::byte*>(memory)}, std::move(done));
    op->part = std::move(part);
    op->sums = const_cast<std::uint32_t*>(sums);  // an operation that writes only reads them
    pool_->submit(std::move(op));
  }

  bool keeps_permissions() const override { return true; }

  std::string name() const override { return pool_->operations().folder().path().string(); }
  io_stats stats() const override { return pool_->operations().counters.snapshot(); }
  std::uint64_t staging_bytes() const override { return pool_->options().workers * pool_->options().staging; }
  std::optional<node_space> space() const override {
    struct statvfs v {};
    if (::statvfs(name().c_str(), &v) != 0) throw io_error({errno, std::generic_category()}, "'" + name() + "'");
    return node_space{std::uint64_t{v.f_blocks} * v.f_frsize, std::uint64_t{v.f_bavail} * v.f_frsize};
  }

 private:
  operation_ptr make(node_call call, completion done) const {
    auto op = std::make_unique<operation>();
    static_cast<node_call&>(*op) = std::move(call);
    op->origin = origin_;
    op->done = std::move(done);
    return op;
  }

  const pid_t owner_ = ::getpid();
  const std::shared_ptr<thread_pool> pool_;
  const request_origin origin_;
  const bool for_others_ = false;
};

}  // namespace

std::shared_ptr<served_node> open_local_node(const std::filesystem::path& folder, const local_node_options& options) {
  if (options.workers == 0 || options.staging == 0 || options.staging % (64 << 10) != 0)
    throw usage_error(errc::invalid_request,
                      "a local node needs at least one worker and a staging size that is a multiple "
                      "of 64 KiB");
  const auto objects = folder / "shares";
  std::error_code code;
  if (!std::filesystem::is_directory(folder, code) && !code) code = std::make_error_code(std::errc::not_a_directory);
  if (!code && options.writable) {
    code = {make_folder_like(objects, folder), std::generic_category()};
    if (!code) code = forbidden(objects, R_OK | W_OK | X_OK);
  }
  if (code) throw io_error(code, "node " + folder.string() + ": the folder cannot be used");
  return std::make_shared<local_io_service>(std::filesystem::absolute(folder), options);
}

}  // namespace ooc::storage
