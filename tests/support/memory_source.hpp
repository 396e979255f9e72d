// A block source over plain memory, for tests of the pager: transfers end at once or on another
// thread after a random delay, and may be told to fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "runtime/blocks/block_source.hpp"
#include "support/pauses.hpp"

namespace ooc::test {

class memory_source : public detail::block_source {
 public:
  memory_source(std::size_t blocks, std::size_t block_bytes, unsigned threads = 0, unsigned max_delay_us = 0)
      : bytes_(blocks * block_bytes), block_bytes_(block_bytes), max_delay_us_(max_delay_us) {
    for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  }
  ~memory_source() override {
    {
      std::lock_guard l(mutex_);
      stopping_ = true;
    }
    ready_.notify_all();
    for (auto& t : workers_) t.join();
  }

  void load(detail::block_index b, detail::load_part part, std::byte* frame, completion done) override {
    ++loads;
    run([=, this, done = counted(block_bytes_, std::move(done))] {
      if (fail_loads > 0 && fail_loads-- > 0) return done(injected());
      if (zeros_within_promise && part == detail::load_part::outside_promise) return done({});
      copy_in(b, frame);
      done({});
    });
  }
  std::uint64_t load_inline(detail::block_index b, std::byte* frame) noexcept override {
    if (!whole_->at_once || ++whole_->asked_now % whole_->one_not_at_once_of == 0) return 0;  // it may always say no
    copy_in(b, frame);
    ++loads_now;
    return block_bytes_;
  }
  unsigned fetched_together() const noexcept override { return together; }
  void load_together(std::span<const detail::block_place> blocks, completion done) override {
    ++joint_loads;
    block_source::load_together(blocks, std::move(done));
  }
  void store(detail::block_index b, const std::byte* frame, completion done) override {
    ++stores;
    run([=, this, done = counted(block_bytes_, std::move(done))] {
      if (fail_stores > 0 && fail_stores-- > 0) return fail_store(b, done);
      copy_out(b, frame);
      done({});
    });
  }
  void store_together(std::span<const detail::stored_block> blocks, completion done) override {
    ++joint_stores;
    block_source::store_together(blocks, std::move(done));
  }
  void store_diff(detail::block_index b, const std::byte* frame, const std::byte* twin, completion done) override {
    ++stores;
    std::vector<std::pair<std::size_t, std::byte>> changed;
    for (std::size_t i = 0; i < block_bytes_; ++i)
      if (frame[i] != twin[i]) changed.emplace_back(i, frame[i]);
    run([=, this, done = counted(changed.size(), std::move(done))] {
      if (fail_stores > 0 && fail_stores-- > 0) return fail_store(b, done);
      std::lock_guard l(whole_->data_mutex_);
      for (const auto& [i, byte] : changed) data()[b * block_bytes_ + i] = byte;
      done({});
    });
  }
  bool nothing_to_load(detail::block_index, detail::load_part part) const noexcept override {
    return loads_nothing || (part == detail::load_part::outside_promise && promise_covers_blocks);
  }

  /// The same bytes in blocks of another size; it goes first.
  std::unique_ptr<memory_source> in_blocks_of(std::size_t bytes) {
    auto s = std::make_unique<memory_source>(0, bytes);
    s->whole_ = this;
    return s;
  }

  /// The blocks whose stores were made to fail and the pager knows of it.
  std::vector<detail::block_index> refused() {
    std::lock_guard l(mutex_);
    return refused_;
  }

  /// The bytes of the store.
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_.data());
  }

  std::atomic<std::size_t> loads{0};
  std::atomic<std::size_t> joint_loads{0};
  std::atomic<std::size_t> joint_stores{0};
  std::atomic<std::size_t> stores{0};
  std::atomic<std::size_t> ended{0};  ///< loads and stores of which the pager knows
  std::atomic<int> fail_loads{0};
  std::atomic<int> fail_stores{0};
  std::atomic<std::size_t> asked_now{0}, loads_now{0};
  std::atomic<bool> at_once{false};  ///< loads may be had in the thread that touches, but for one of so many:
  std::atomic<std::size_t> one_not_at_once_of{5};
  unsigned together = 1;
  bool loads_nothing = false;
  bool promise_covers_blocks = false;
  bool zeros_within_promise = false;  ///< promised blocks are asked for, and nothing of them is read

 private:
  static std::function<void(const failure&)> counted(std::uint64_t bytes, completion done) {
    return [bytes, done = std::move(done)](const failure& f) { done(f, bytes); };
  }
  static failure injected() { return {std::make_error_code(std::errc::io_error), "injected"}; }

  void fail_store(detail::block_index b, const std::function<void(const failure&)>& done) {
    done(injected());
    std::lock_guard l(mutex_);
    refused_.push_back(b);
  }

  // The program may be reading the block that is flushed in place; the sanitizer cannot see that
  // the pager keeps writers out by taking their access away.
  __attribute__((no_sanitize("thread"))) void copy_out(detail::block_index b, const std::byte* frame) {
    std::lock_guard l(whole_->data_mutex_);
    auto* to = reinterpret_cast<volatile std::uint64_t*>(data() + b * block_bytes_);
    auto* from = reinterpret_cast<const volatile std::uint64_t*>(frame);
    for (std::size_t i = 0; i < block_bytes_ / 8; ++i) to[i] = from[i];
  }

  // What the program wrote to the store before its touch: over userfaultfd the kernel orders the touch and the load,
  // which the sanitizer does not see.  Writes to the frame it does see.
  void copy_in(detail::block_index b, std::byte* frame) {
    std::lock_guard l(whole_->data_mutex_);
    const std::byte* const from = data() + b * block_bytes_;
    for (std::size_t i = 0; i < block_bytes_; i += 8) {
      const std::uint64_t word = untracked_word(from + i);
      std::memcpy(frame + i, &word, 8);
    }
  }
  __attribute__((no_sanitize("thread"))) static std::uint64_t untracked_word(const std::byte* from) {
    return *reinterpret_cast<const volatile std::uint64_t*>(from);
  }

  std::byte* data() { return whole_->bytes_.data(); }

  void run(std::function<void()> f) {
    if (whole_ != this && !whole_->workers_.empty()) {
      whole_->run(std::move(f));
      return;
    }
    if (workers_.empty()) {
      f();
      ++ended;
      return;
    }
    {
      std::lock_guard l(mutex_);
      queue_.push_back(std::move(f));
    }
    ready_.notify_one();
  }
  void work(unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (;;) {
      std::unique_lock l(mutex_);
      ready_.wait(l, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto f = std::move(queue_.front());
      queue_.pop_front();
      l.unlock();
      if (max_delay_us_) testing::random_pause(std::chrono::microseconds(random() % max_delay_us_));
      f();
      ++ended;
    }
  }

  memory_source* whole_ = this;
  std::vector<std::byte> bytes_;
  std::size_t block_bytes_;
  unsigned max_delay_us_;
  std::mutex data_mutex_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  std::vector<detail::block_index> refused_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ooc::test
