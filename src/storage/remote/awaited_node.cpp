#include "storage/remote/awaited_node.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ooc::storage {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

/// The node and the requests for it, as the thread sees them.
class arrival {
 public:
  struct waiting_request {
    std::function<void(io_service&)> send;
    completion fail;
    clock::time_point until{};
  };

  arrival(std::string name, node_lookup lookup, std::chrono::milliseconds deadline)
      : name_(std::move(name)), lookup_(std::move(lookup)), deadline_(deadline) {}

  /// The node, if it is there.
  std::shared_ptr<io_service> node() const {
    const std::lock_guard lock(mutex_);
    return node_;
  }

  void submit(waiting_request r) {
    std::shared_ptr<io_service> node;
    {
      const std::lock_guard lock(mutex_);
      node = node_;
      if (!node) {
        r.until = clock::now() + deadline_;
        waiting_.push_back(std::move(r));
      }
    }
    if (node)
      r.send(*node);
    else
      wake_.notify_all();
  }

  /// The thread ends when no request waits.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }

  /// Of the thread: until the node is there, or the last request has failed after stop().
  void run() {
    for (auto pause = 20ms;; pause = std::min(2 * pause, 500ms)) {
      if (!wait_for_requests()) return;
      std::string trouble;
      try {
        if (auto found = lookup_()) return arrived(open_remote_node(std::move(*found)));
      } catch (const error& e) {
        trouble = e.what();
      }
      fail_late(trouble);
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, pause, [&] { return stopping_ && waiting_.empty(); });
    }
  }

  const std::string& name() const noexcept { return name_; }

 private:
  /// False where nothing will come any more.
  bool wait_for_requests() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    return !waiting_.empty();
  }

  void arrived(std::shared_ptr<io_service> node) {
    std::vector<waiting_request> now;
    {
      const std::lock_guard lock(mutex_);
      node_ = node;
      now = std::exchange(waiting_, {});
    }
    for (const waiting_request& r : now) {
      try {
        r.send(*node);
      } catch (const std::exception& e) {
        r.fail({std::make_error_code(std::errc::io_error), node->name() + ": " + e.what()});
      }
    }
  }

  void fail_late(const std::string& trouble) {
    std::vector<waiting_request> late;
    {
      const std::lock_guard lock(mutex_);
      const auto now = clock::now();
      std::erase_if(waiting_, [&](waiting_request& r) {
        if (now < r.until) return false;
        late.push_back(std::move(r));
        return true;
      });
    }
    for (const waiting_request& r : late)
      r.fail({std::make_error_code(std::errc::timed_out),
              name_ + ": its I/O server has not been there for " + std::to_string(deadline_ / 1ms) +
                  " ms" + (trouble.empty() ? "" : " (" + trouble + ")") +
                  "; start it (ooc-iod), or see its log for why it cannot register"});
  }

  const std::string name_;
  const node_lookup lookup_;
  const std::chrono::milliseconds deadline_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<io_service> node_;
  std::vector<waiting_request> waiting_;
  bool stopping_ = false;
};

class awaited_node final : public io_service {
 public:
  explicit awaited_node(std::shared_ptr<arrival> a)
      : arrival_(std::move(a)), thread_([a = arrival_] { a->run(); }) {}

  ~awaited_node() override {
    arrival_->stop();
    if (std::this_thread::get_id() == thread_.get_id())
      thread_.detach();  // let go in a completion; the thread has a share of the rest
    else
      thread_.join();
  }

  void read(shape_ptr file, std::uint32_t turn, request_ptr r, std::byte* memory,
            completion done) override {
    submit(done, [=](io_service& n) { n.read(file, turn, r, memory, done); });
  }
  void write(shape_ptr file, std::uint32_t turn, request_ptr r, const std::byte* memory,
             completion done) override {
    submit(done, [=](io_service& n) { n.write(file, turn, r, memory, done); });
  }
  void create(shape_ptr file, std::uint32_t turn, completion done) override {
    submit(done, [=](io_service& n) { n.create(file, turn, done); });
  }
  void resize(shape_ptr file, std::uint32_t turn, std::uint64_t old_size,
              completion done) override {
    submit(done, [=](io_service& n) { n.resize(file, turn, old_size, done); });
  }
  void remove(shape_ptr file, completion done) override {
    submit(done, [=](io_service& n) { n.remove(file, done); });
  }
  void sync(shape_ptr file, std::uint32_t turn, completion done) override {
    submit(done, [=](io_service& n) { n.sync(file, turn, done); });
  }
  void verify(shape_ptr file, std::uint32_t turn,
              std::function<void(const failure&, verify_report)> done) override {
    submit([done](const failure& f) { done(f, {}); },
           [=](io_service& n) { n.verify(file, turn, done); });
  }
  void list(std::function<void(const failure&, std::vector<file_id>)> done) override {
    submit([done](const failure& f) { done(f, {}); }, [=](io_service& n) { n.list(done); });
  }

  void how_far(std::function<void(const failure&, distance)> done) override {
    submit([done](const failure& f) { done(f, distance::network); },
           [=](io_service& n) { n.how_far(done); });
  }

  std::string name() const override {
    const auto node = arrival_->node();
    return node ? node->name() : arrival_->name();
  }
  io_stats stats() const override {
    const auto node = arrival_->node();
    return node ? node->stats() : io_stats{};
  }
  /// As of the remote node.
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  void submit(completion fail, std::function<void(io_service&)> send) {
    arrival_->submit({std::move(send), std::move(fail)});
  }

  const std::shared_ptr<arrival> arrival_;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<io_service> await_remote_node(std::string name, node_lookup lookup,
                                              std::chrono::milliseconds deadline) {
  return std::make_shared<awaited_node>(
      std::make_shared<arrival>(std::move(name), std::move(lookup), deadline));
}

}  // namespace ooc::storage
