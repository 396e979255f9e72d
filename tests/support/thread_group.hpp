// Process groups whose ranks are threads of this process, or two processes.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "oocarray/process_group.hpp"

namespace ooc::testing {

/// Operations must be the same on all ranks; what they are called is not looked at.
class thread_group {
 public:
  explicit thread_group(int size) : told_(static_cast<std::size_t>(size)), sent_(told_.size()), meeting_(size) {}

  int size() const noexcept { return static_cast<int>(told_.size()); }
  /// Bytes that went from one rank to another by exchange().
  std::uint64_t exchanged() const noexcept { return exchanged_; }

  /// Calls f(group) as every rank at once and waits for all; throws what the lowest rank threw.  Only
  /// once: a rank that has ended is waited for no more.
  template <class F>
  void run(F&& f) {
    std::vector<std::exception_ptr> thrown(told_.size());
    std::vector<std::thread> ranks;
    for (int r = 0; r < size(); ++r)
      ranks.emplace_back([&, r] {
        member group(*this, r);
        try {
          f(group);
        } catch (...) {
          thrown[static_cast<std::size_t>(r)] = std::current_exception();
        }
        meeting_.arrive_and_drop();
      });
    for (std::thread& t : ranks) t.join();
    for (const std::exception_ptr& e : thrown)
      if (e) std::rethrow_exception(e);
  }

 private:
  class member final : public process_group {
   public:
    member(thread_group& all, int rank) : all_(all), me_(static_cast<std::size_t>(rank)) {}

    int rank() const noexcept override { return static_cast<int>(me_); }
    int size() const noexcept override { return all_.size(); }
    void barrier(std::string_view) override { all_.meeting_.arrive_and_wait(); }
    bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) override {
      return all_gather(call, mine)[static_cast<std::size_t>(root)];
    }
    std::vector<bytes> all_gather(std::string_view call, std::span<const std::byte> mine) override {
      all_.told_[me_].assign(mine.begin(), mine.end());
      barrier(call);
      std::vector<bytes> told = all_.told_;
      barrier(call);
      return told;
    }
    void all_reduce(std::string_view call, std::span<std::uint64_t> values, reduction how) override {
      const std::vector<bytes> told = all_gather(call, std::as_bytes(values));
      for (std::size_t i = 0; i < values.size(); ++i)
        for (std::size_t r = 0; r < told.size(); ++r) {
          const auto other = reinterpret_cast<const std::uint64_t*>(told[r].data())[i];
          std::uint64_t& v = values[i];
          if (r == 0)
            v = other;
          else
            v = how == reduction::sum ? v + other : how == reduction::max ? std::max(v, other) : std::min(v, other);
        }
    }
    void exchange(std::string_view call, std::span<const std::span<const std::byte>> out,
                  std::span<const std::span<std::byte>> in, std::shared_ptr<const void>) override {
      all_.sent_[me_] = out;
      barrier(call);
      for (std::size_t r = 0; r < in.size(); ++r) {
        if (r == me_) continue;
        const std::span<const std::byte> from = all_.sent_[r][me_];
        if (from.size() != in[r].size()) throw std::logic_error("a message of another length than is expected");
        std::copy(from.begin(), from.end(), in[r].begin());
        all_.exchanged_ += from.size();
      }
      barrier(call);
    }

   private:
    thread_group& all_;
    std::size_t me_;
  };

  std::vector<process_group::bytes> told_;
  std::vector<std::span<const std::span<const std::byte>>> sent_;
  std::barrier<> meeting_;
  std::atomic<std::uint64_t> exchanged_{0};
};

/// A rank, with a socket to the other one.  It tells and is told, and can neither reduce nor exchange.
class process_pair final : public process_group {
 public:
  process_pair(int rank, int socket) : rank_(rank), socket_(socket) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return 2; }
  void barrier(std::string_view call) override { (void)all_gather(call, {}); }
  bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) override {
    return all_gather(call, mine)[static_cast<std::size_t>(root)];
  }
  std::vector<bytes> all_gather(std::string_view, std::span<const std::byte> mine) override {
    const std::size_t sent = mine.size();
    std::size_t coming = 0;
    send(&sent, sizeof sent);
    send(mine.data(), sent);
    receive(&coming, sizeof coming);
    std::vector<bytes> all(2, bytes(mine.begin(), mine.end()));
    bytes& other = all[static_cast<std::size_t>(1 - rank_)];
    other.resize(coming);
    receive(other.data(), coming);
    return all;
  }
  void all_reduce(std::string_view, std::span<std::uint64_t>, reduction) override { throw std::logic_error("unused"); }
  void exchange(std::string_view, std::span<const std::span<const std::byte>>, std::span<const std::span<std::byte>>,
                std::shared_ptr<const void>) override {
    throw std::logic_error("unused");
  }

 private:
  void send(const void* bytes, std::size_t n) const {
    if (n != 0 && ::send(socket_, bytes, n, MSG_NOSIGNAL) != static_cast<ssize_t>(n))
      throw std::runtime_error("nothing sent");
  }
  void receive(void* bytes, std::size_t n) const {
    if (n != 0 && ::recv(socket_, bytes, n, MSG_WAITALL) != static_cast<ssize_t>(n))
      throw std::runtime_error("the other rank has gone");
  }

  const int rank_, socket_;
};

/// A rank of which `before` hears before it tells the others what it did in a call, and `after` when they have met.
class watched_rank final : public process_group {
 public:
  using told = std::function<void(std::string_view call)>;

  watched_rank(
      process_group& g, told before, told after = [](std::string_view) {})
      : group_(g), before_(std::move(before)), after_(std::move(after)) {}

  int rank() const noexcept override { return group_.rank(); }
  int size() const noexcept override { return group_.size(); }
  void barrier(std::string_view call) override {
    group_.barrier(call);
    after_(call);
  }
  bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) override {
    return group_.broadcast(call, mine, root);
  }
  std::vector<bytes> all_gather(std::string_view call, std::span<const std::byte> mine) override {
    before_(call);
    std::vector<bytes> all = group_.all_gather(call, mine);
    after_(call);
    return all;
  }
  void all_reduce(std::string_view call, std::span<std::uint64_t> values, reduction how) override {
    group_.all_reduce(call, values, how);
  }
  void exchange(std::string_view call, std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in, std::shared_ptr<const void> owner) override {
    group_.exchange(call, out, in, std::move(owner));
  }

 private:
  process_group& group_;
  const told before_, after_;
};

}  // namespace ooc::testing
