#include "storage/collective/two_phase_exchange.hpp"

#include <array>
#include <cstring>
#include <memory>

#include "storage/collective/collective_buffer.hpp"

namespace ooc::storage {
namespace {

/// The bytes of one round that travel: a part for each rank.
class parcels {
 public:
  /// Room for a part of each length; what was there is lost.
  void make_room(std::span<const std::uint64_t> lengths) {
    std::uint64_t total = 0;
    for (const std::uint64_t n : lengths) total += n;
    if (total > room_) {
      bytes_.reset();
      bytes_ = std::make_unique_for_overwrite<std::byte[]>(total);
      room_ = total;
    }
    parts_.clear();
    std::byte* at = bytes_.get();
    for (const std::uint64_t n : lengths) {
      parts_.emplace_back(at, n);
      at += n;
    }
  }
  std::span<const std::span<std::byte>> parts() const noexcept { return parts_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t room_ = 0;
  std::vector<std::span<std::byte>> parts_;
};

std::uint64_t bytes_in(std::span<const region> regions) noexcept {
  std::uint64_t n = 0;
  for (const region& p : regions) n += p.length;
  return n;
}

enum class side : std::uint8_t { window, memory };

std::uint64_t place(const region& p, side s) noexcept { return s == side::window ? p.node_offset : p.memory_offset; }

/// memcpy() for lengths that are mostly short.
void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t n) noexcept {
  constexpr std::size_t step = 32;
  if (n > 16 * step) {
    std::memcpy(to, from, n);
    return;
  }
  for (; n >= step; n -= step, to += step, from += step) std::memcpy(to, from, step);
  for (; n >= 8; n -= 8, to += 8, from += 8) std::memcpy(to, from, 8);
  for (; n > 0; --n) *to++ = *from++;
}

/// Copies regions one after another to `to`.
void gather(std::span<const region> regions, const std::byte* from, side s, std::byte* to) noexcept {
  for (const region& p : regions) {
    copy_bytes(to, from + place(p, s), p.length);
    to += p.length;
  }
}

/// The opposite.
void scatter(std::span<const region> regions, const std::byte* from, std::byte* to, side s) noexcept {
  for (const region& p : regions) {
    copy_bytes(to + place(p, s), from, p.length);
    from += p.length;
  }
}

class exchange {
 public:
  exchange(const striped_file& file, const collective_transfer& t, const exchange_plan& plan)
      : file_(file),
        t_(t),
        plan_(plan),
        me_(static_cast<std::uint64_t>(t.group.rank())),
        held_(std::make_shared<memory>()),
        mine_(plan.ranks),
        lengths_(plan.ranks) {
    for (auto& w : held_->windows) {
      w = std::make_shared<window>(plan.window);
      w->regions().resize(plan.ranks);
    }
  }

  failure read() {
    const std::vector<std::uint32_t>& rounds = plan_.rounds;
    for (std::size_t i = 0; i <= rounds.size(); ++i) {
      if (i < rounds.size()) {
        find_others_regions(i);
        if (!failed_) window_of(i).start_read(file_, begin_of(i));
      }
      if (i > 0) pass_on(i - 1);
    }
    return failed_;
  }

  failure write() {
    const std::vector<std::uint32_t>& rounds = plan_.rounds;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      note(window_of(i).finish());
      find_others_regions(i);
      collect(i);
      if (!failed_) window_of(i).start_write(file_, begin_of(i));
    }
    for (auto& w : held_->windows) note(w->finish());
    return failed_;
  }

 private:
  /// Memory that messages and transfers in flight need, also when this object has gone.
  struct memory {
    std::array<std::shared_ptr<window>, 2> windows;
    parcels out, in;
  };

  window& window_of(std::size_t i) noexcept { return *held_->windows[i % 2]; }
  std::uint64_t begin_of(std::size_t i) const noexcept { return plan_.window_begin(plan_.rounds[i], me_); }
  void note(const failure& f) {
    if (f && !failed_) failed_ = f;
  }

  /// Finds the regions of this rank's window that each rank wants.
  void find_others_regions(std::size_t i) {
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      plan_.regions_in_window(t_.wanted[r], plan_.rounds[i], me_, window_of(i).regions()[r]);
  }
  /// Finds the regions of each rank's window that this rank wants.
  void find_own_regions(std::size_t i) {
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      plan_.regions_in_window(t_.wanted[me_], plan_.rounds[i], r, mine_[r]);
  }

  /// Room for these regions of each rank but this one, whose regions need not travel.
  void make_room(parcels& p, const std::vector<std::vector<region>>& by_rank) {
    for (std::uint64_t r = 0; r < plan_.ranks; ++r) lengths_[r] = r == me_ ? 0 : bytes_in(by_rank[r]);
    p.make_room(lengths_);
  }

  void send_and_receive() {
    const auto& parts = held_->out.parts();
    const std::vector<std::span<const std::byte>> out(parts.begin(), parts.end());
    t_.group.exchange(t_.call, out, held_->in.parts(), held_);
  }

  /// From the windows to the ranks' memory.
  void pass_on(std::size_t i) {
    window& w = window_of(i);
    note(w.finish_read(file_, begin_of(i)));
    find_own_regions(i);
    make_room(held_->out, w.regions());
    make_room(held_->in, mine_);
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      if (r != me_) gather(w.regions()[r], w.bytes(), side::window, held_->out.parts()[r].data());
    for (const region& p : mine_[me_]) copy_bytes(t_.memory + p.memory_offset, w.bytes() + p.node_offset, p.length);
    send_and_receive();
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      if (r != me_) scatter(mine_[r], held_->in.parts()[r].data(), t_.memory, side::memory);
  }

  /// From the ranks' memory to the windows.
  void collect(std::size_t i) {
    window& w = window_of(i);
    find_own_regions(i);
    make_room(held_->out, mine_);
    make_room(held_->in, w.regions());
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      if (r != me_) gather(mine_[r], t_.memory, side::memory, held_->out.parts()[r].data());
    for (const region& p : mine_[me_]) copy_bytes(w.bytes() + p.node_offset, t_.memory + p.memory_offset, p.length);
    send_and_receive();
    for (std::uint64_t r = 0; r < plan_.ranks; ++r)
      if (r != me_) scatter(w.regions()[r], held_->in.parts()[r].data(), w.bytes(), side::window);
  }

  const striped_file& file_;
  const collective_transfer& t_;
  const exchange_plan& plan_;
  const std::uint64_t me_;
  std::shared_ptr<memory> held_;
  std::vector<std::vector<region>> mine_;
  std::vector<std::uint64_t> lengths_;
  failure failed_;
};

}  // namespace

failure two_phase_transfer(const striped_file& file, const collective_transfer& t, const exchange_plan& plan) {
  exchange e(file, t, plan);
  return t.kind == access_kind::read ? e.read() : e.write();
}

}  // namespace ooc::storage
