#include "runtime/array/element_transfer.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "oocarray/error.hpp"
#include "runtime/geometry/access_log.hpp"
#include "runtime/pager/exact_access.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/signals.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/page.hpp"
#include "storage/layout/file_shape.hpp"

namespace ooc::detail {
namespace {

/// Runs in a request: few enough for the lists that nodes take in one message, enough to keep a
/// device busy while the next one is made.
constexpr std::uint64_t most_pieces = 2048;
constexpr std::uint64_t least_pieces = 256;  ///< where there are as many
constexpr std::uint64_t most_requests = 4;   ///< in flight
/// The memory that a run takes until it has been transferred: here, in its request, and in the node's list.
constexpr std::size_t bytes_per_piece = 512;
constexpr std::uint64_t most_memory = std::uint64_t{64} << 20;
constexpr std::uint64_t most_ahead = std::uint64_t{32} << 20;  ///< of blocks that are loaded
/// Blocks below this size are never worth a load of their own: a list is one message for many.
constexpr std::uint64_t least_dense_block = 64 << 10;

/// More than one where the operation of an accumulate calls gather(): it waits for no other's memory then,
/// as its own is not coming back.
thread_local unsigned calls_of_this_thread = 0;

}  // namespace

/// The blocks that nobody may bring in until what was listed of them has arrived.
class element_transfer::kept_out {
 public:
  explicit kept_out(segment& s) : segment_(s) {}
  ~kept_out() { let_in(); }
  kept_out(const kept_out&) = delete;
  kept_out& operator=(const kept_out&) = delete;

  /// False where the unit is not out.
  bool add(const segment_unit& u) {
    units_.reserve(units_.size() + 1);  // nothing may throw once it is kept out
    if (!no_signals_) no_signals_.emplace();
    block* const kept = u.keep_out();
    if (!kept) return false;
    units_.emplace_back(u, kept);
    const block_index b = u.begin() / segment_.block_bytes();
    const block_range r{b, b + 1};
    segment_.note_written({&r, 1});  // also where the write fails, as any part of it may arrive
    return true;
  }
  void let_in() noexcept {
    for (const auto& [unit, kept] : units_) unit.let_in(kept);
    units_.clear();
    no_signals_.reset();
  }

 private:
  segment& segment_;
  std::vector<std::pair<segment_unit, block*>> units_;
  std::optional<signals_blocked> no_signals_;
};

element_transfer::element_transfer(local_array& array, std::size_t count, access_log* log, std::string call)
    : array_(array),
      now_(array.source().current()),
      log_(log),
      call_(std::move(call)),
      batch_(now_->geometry),
      staging_(nullptr, &std::free),
      transfers_(std::make_shared<in_flight>()) {
  const array_geometry& g = now_->geometry;
  pager& p = array.segment().served_by();
  const std::uint64_t size = g.element_size();
  const std::uint64_t each = element_batch::bytes_per_index + size;
  const std::uint64_t in_element = std::min<std::uint64_t>(2 + size / g.block_bytes(), 64);  // pieces
  const std::uint64_t pieces = std::min(count * in_element, most_requests * most_pieces);
  const std::uint64_t least = in_whole_pages(each + in_element * bytes_per_piece);
  const std::uint64_t wanted = in_whole_pages(count * each + pieces * bytes_per_piece);
  memory_ = p.lend(least, std::min({wanted, most_memory, p.budget() / 4 / page_bytes * page_bytes}),
                   calls_of_this_thread == 0, call_);
  const std::uint64_t bytes = memory_.bytes();
  // For requests what they need, or a quarter.
  const std::uint64_t at_once = bytes >= wanted ? pieces : std::clamp(bytes / 4 / bytes_per_piece, in_element, pieces);
  pieces_in_request_ = std::clamp(at_once / most_requests, std::min<std::uint64_t>(at_once, least_pieces), most_pieces);
  requests_in_flight_ = at_once / pieces_in_request_;
  const std::uint64_t for_pieces = at_once * bytes_per_piece;
  indices_ = std::clamp<std::uint64_t>((bytes - for_pieces) / each, 1, count);
  staging_.reset(static_cast<std::byte*>(std::aligned_alloc(page_bytes, in_whole_pages(indices_ * size))));
  if (!staging_) throw std::bad_alloc();
  ++calls_of_this_thread;
}

element_transfer::~element_transfer() {
  static_cast<void>(transfers_->wait());
  --calls_of_this_thread;
}

void element_transfer::fail(const failure& f) const {
  throw_if({f.code, call_ + ": " + f.what});
  std::abort();  // it is a failure
}

void element_transfer::for_batches(const element_indices& list, const std::function<void()>& each) {
  for (std::size_t first = 0; first < list.count; first += indices_) {
    batch_.assign(list, first, std::min(list.count, first + indices_));
    each();
  }
}

void element_transfer::gather(const element_indices& from, std::byte* to) {
  const std::size_t size = now_->geometry.element_size();
  for_batches(from, [&] {
    transfer(access_kind::read);
    note_reads();
    batch_.for_each([&](std::size_t position, std::size_t place) {
      std::memcpy(to + position * size, staging_.get() + place * size, size);
    });
  });
}

void element_transfer::scatter(const element_indices& to, const std::byte* from) {
  const std::size_t size = now_->geometry.element_size();
  for_batches(to, [&] {
    batch_.for_each([&](std::size_t position, std::size_t place) {  // the last one wins
      std::memcpy(staging_.get() + place * size, from + position * size, size);
    });
    transfer(access_kind::write);
  });
}

void element_transfer::accumulate(const element_indices& to, const std::byte* from, const element_operation& op) {
  const std::size_t size = now_->geometry.element_size();
  for_batches(to, [&] {
    const lock_guard alone(array_.accumulating());
    transfer(access_kind::read);
    note_reads();
    batch_.for_each([&](std::size_t position, std::size_t place) {
      op.apply(op.context, staging_.get() + place * size, from + position * size);
    });
    transfer(access_kind::write);
  });
}

void element_transfer::note_reads() const {
  if (!log_) return;
  for (const std::uint64_t place : batch_.places()) log_->note_read({place, now_->geometry.element_size()});
}

// --- groups

/// The first place at or after `first` of which no byte lies in the unit or before it.
std::size_t element_transfer::end_of_group(std::size_t first, const segment_unit& u) const {
  const std::span<const std::uint64_t> places = batch_.places();
  const auto at = places.begin() + static_cast<std::ptrdiff_t>(first);
  return static_cast<std::size_t>(std::lower_bound(at, places.end(), u.end()) - places.begin());
}

bool element_transfer::is_dense(std::size_t first, std::size_t last, const segment_unit& u) const {
  const std::uint64_t block = u.end() - u.begin(), size = now_->geometry.element_size();
  if (block < least_dense_block) return false;
  std::uint64_t chunks = 0, next = u.begin() / storage::chunk_size;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint64_t place = batch_.places()[i];
    const std::uint64_t from = std::max(place / storage::chunk_size, next);
    const std::uint64_t to = std::min(place + size, u.end());
    const std::uint64_t end = (to + storage::chunk_size - 1) / storage::chunk_size;
    if (end > from) chunks += end - from;
    next = std::max(next, end);
  }
  return chunks * 2 >= block / storage::chunk_size;
}

/// Calls f(bytes of the array's memory, bytes of staging, length) for what of each element lies in the
/// group's unit.
template <class F>
void element_transfer::for_each_run(const group& g, F&& f) const {
  const std::uint64_t size = now_->geometry.element_size();
  for (std::size_t i = g.first; i < g.last; ++i) {
    const std::uint64_t place = batch_.places()[i];
    const std::uint64_t from = std::max(place, g.unit.begin()), to = std::min(place + size, g.unit.end());
    f(from, i * size + (from - place), to - from);
  }
}

/// Carries the elements at the batch's places to or from staging.
void element_transfer::transfer(access_kind kind) {
  const std::span<const std::uint64_t> places = batch_.places();
  const std::uint64_t size = now_->geometry.element_size();
  const segment& s = array_.segment();
  const std::size_t most_groups = std::max<std::size_t>(16, pieces_in_request_);
  kept_out held(array_.segment());
  listed_ = 0;
  try {
    std::uint64_t at = places.front();
    for (std::size_t first = 0; first < places.size();) {
      const segment_unit u(s, at);
      const std::size_t last = end_of_group(first, u);
      const group g{u, first, last, is_dense(first, last, u)};
      if (g.dense || !list(g, kind, held)) by_block_.push_back(g);
      if (by_block_.size() >= most_groups || listed_ >= requests_in_flight_ * pieces_in_request_) settle(kind, held);
      if (places[last - 1] + size > u.end()) {  // goes on in the next one
        first = last - 1;
        at = u.end();
      } else {
        first = last;
        if (first < places.size()) at = places[first];
      }
    }
    settle(kind, held);
  } catch (...) {
    static_cast<void>(transfers_->wait());
    pieces_.clear();
    by_block_.clear();
    throw;
  }
}

/// Lists a group, and sends what makes up a request; false where its unit is not out.
bool element_transfer::list(const group& g, access_kind kind, kept_out& held) {
  const bool reads = kind == access_kind::read;
  if (reads ? !g.unit.is_out() : !held.add(g.unit)) return false;
  const array_geometry& geometry = now_->geometry;
  const block_index b = g.unit.begin() / geometry.block_bytes();
  for_each_run(g, [&](std::uint64_t in_memory, std::uint64_t in_staging, std::uint64_t length) {
    std::uint64_t in_file = in_memory - geometry.lead();
    if (!geometry.tile().empty() || !geometry.file_tile().empty()) {
      const coordinates c = geometry.element_at(b, in_memory - b * geometry.block_bytes());
      in_file = geometry.file_order().offset({c.data(), geometry.rank()}) + in_staging % geometry.element_size();
    }
    pieces_.push_back({in_file, in_staging, length});
    ++listed_;
    if (log_ && !reads) log_->note_written({in_memory, length});
    if (pieces_.size() == pieces_in_request_) send(kind);
  });
  return true;
}

void element_transfer::send(access_kind kind) {
  if (pieces_.empty()) return;
  std::ranges::sort(pieces_, {}, &piece::in_file);
  auto r = std::make_shared<request>();
  for (const piece& p : pieces_) r->add(p.in_file, p.in_staging, p.length);
  pieces_.clear();
  transfers_->wait_below(requests_in_flight_);
  transfers_->begin();
  const auto done = [all = transfers_, now = now_](const failure& f) { all->end(f); };
  try {
    if (kind == access_kind::read)
      now_->file->read(std::move(r), staging_.get(), done);
    else
      now_->file->write(std::move(r), staging_.get(), done);
  } catch (const std::exception& e) {
    transfers_->end({std::make_error_code(std::errc::not_enough_memory), e.what()});
  }
}

/// Ends what has begun: afterwards nothing is in flight, listed or kept out.
void element_transfer::settle(access_kind kind, kept_out& held) {
  const auto finish = [&] {
    const failure f = transfers_->wait();
    held.let_in();
    if (f) fail(f);
  };
  for (;;) {
    send(kind);
    if (kind == access_kind::write) finish();  // who waits for a block keeps none
    serve(kind);
    finish();
    listed_ = 0;
    if (by_block_.empty()) return;
    for (const group& g : std::exchange(by_block_, {}))  // blocks that have left meanwhile
      if (!list(g, kind, held)) by_block_.push_back(g);
  }
}

/// Copies what lies in memory, and what is to be brought there; leaves groups whose block turns out to
/// be out.
void element_transfer::serve(access_kind kind) {
  segment& s = array_.segment();
  const std::uint64_t ahead_bytes = std::min(most_ahead, s.served_by().budget() / 8);
  const std::size_t depth = std::max<std::uint64_t>(1, ahead_bytes / s.block_bytes());
  std::vector<group> left;
  std::size_t ahead = 0;
  for (std::size_t i = 0; i < by_block_.size(); ++i) {
    for (; ahead < by_block_.size() && ahead < i + depth; ++ahead) {
      const block_index b = by_block_[ahead].unit.begin() / s.block_bytes();
      const block_range r{b, b + 1};
      if (by_block_[ahead].dense) s.prefetch({&r, 1});
    }
    const group& g = by_block_[i];
    if (!g.dense) {
      g.unit.await();
      if (g.unit.is_out()) {
        left.push_back(g);
        continue;
      }
    }
    copy(g, kind);
  }
  by_block_ = std::move(left);
}

/// Through a pin, so that a load that fails is an exception and not the end of the process.  The least
/// of budgets have no room for one: the elements are touched then.
void element_transfer::copy(const group& g, access_kind kind) const {
  const bool reads = kind == access_kind::read;
  const access_mode mode = reads ? access_mode::read : access_mode::write;
  segment_unit u = g.unit;
  exact_access() = log_ && reads;
  const failure f = u.pin(mode);
  const bool touched = f.code == errc::budget_too_small;
  if (!f || touched)
    for_each_run(g, [&](std::uint64_t in_memory, std::uint64_t in_staging, std::uint64_t length) {
      std::byte* const element = array_.segment().base() + in_memory;
      std::byte* const copy = staging_.get() + in_staging;
      std::memcpy(reads ? copy : element, reads ? element : copy, length);
    });
  exact_access() = false;
  if (!f) u.unpin(mode);
  if (f && !touched) fail(f);
}

}  // namespace ooc::detail
