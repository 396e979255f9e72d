#include "storage/service/growing_file.hpp"

#include <algorithm>
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t least_step = std::uint64_t{16} << 20;
constexpr std::uint64_t greatest_step = std::uint64_t{4} << 30;

/// f(bytes of the stripe objects): first with more than `end`.
template <class F>
opened_file with_space_if_there_is(std::uint64_t end, F f) {
  try {
    return f(end + std::clamp(end, least_step, greatest_step));
  } catch (const error& e) {
    if (e.code() != std::errc::no_space_on_device) throw;
  }
  return f(end);
}

}  // namespace

growing_file::growing_file(std::shared_ptr<store_core> store, opened_file f, std::shared_ptr<void> claim)
    : store_(std::move(store)), claim_(std::move(claim)), now_(std::make_shared<const opened_file>(std::move(f))) {}

growing_file::snapshot growing_file::current() const {
  const lock_guard lock(mutex_);
  return now_;
}

// For who changes the file, one at a time: what comes of that is newer than what others have asked for meanwhile.
growing_file::snapshot growing_file::replace(opened_file f) {
  auto next = std::make_shared<const opened_file>(std::move(f));
  const lock_guard lock(mutex_);
  size_known_ = true;
  return now_ = std::move(next);
}

// What was asked before another thread has changed `now_` may be older than that, and is asked again.
growing_file::snapshot growing_file::refreshed() {
  for (;;) {
    const snapshot seen = current();
    auto next = std::make_shared<const opened_file>(store_->refresh(*seen));
    const lock_guard lock(mutex_);
    if (now_ != seen) continue;
    size_known_ = true;
    return now_ = std::move(next);
  }
}

growing_file::snapshot growing_file::known_to_reach(std::uint64_t end) const {
  const lock_guard lock(mutex_);
  return size_known_ && now_->meta.size >= end ? now_ : nullptr;
}

growing_file::snapshot growing_file::reaching(std::uint64_t end) {
  if (snapshot f = known_to_reach(end)) return f;
  return refreshed();
}

void growing_file::forget_size() {
  const lock_guard lock(mutex_);
  size_known_ = false;
}

growing_file::snapshot growing_file::grown_to(std::uint64_t end) {
  if (snapshot f = known_to_reach(end)) return f;
  const lock_guard growing(growing_);
  const snapshot f = reaching(end);
  if (f->meta.size >= end) return f;
  const bool again = std::exchange(grew_, true);
  if (again && !claim_) claim_ = claim_to_write(*store_, f->meta.id, true);
  const auto grow = [&](std::uint64_t reserved) { return store_->grow(*f, end, reserved); };
  return replace(again && claim_ ? with_space_if_there_is(end, grow) : grow(0));
}

growing_file::snapshot growing_file::roomy(std::uint64_t end) {
  const lock_guard growing(growing_);
  const snapshot f = reaching(end);
  if (allocated_size(f->meta) >= end) return f;
  const auto reserve = [&](std::uint64_t reserved) { return store_->reserve(*f, end, reserved); };
  return replace(std::exchange(grew_, true) ? with_space_if_there_is(end, reserve) : reserve(end));
}

void growing_file::seen_to(const snapshot& f, std::uint64_t end) {
  opened_file longer = *f;
  longer.meta.size = end;
  const lock_guard lock(mutex_);
  if (now_ == f) now_ = std::make_shared<const opened_file>(std::move(longer));
}

void growing_file::resize(std::uint64_t size) {
  const lock_guard growing(growing_);
  const snapshot f = current();
  if (!f->meta.array.extents.empty())
    refuse(errc::invalid_request, f->meta.path,
           "it holds an array, whose size follows from its extents; resize the array");
  // Also where the size stays: others may have stored bytes behind it, which go.
  replace(store_->resize(*f, size, {}));
}

failure growing_file::write(const request& r, const std::byte* memory) {
  for (;;) {
    const snapshot f = grown_to(r.file_end());
    const failure e = f->file->write(r, memory);
    if (e.code != errc::cut_off) return e;
    learn_of_cut(f->meta.cuts);
  }
}

void growing_file::learn_of_cut(std::uint64_t stated) {
  const lock_guard growing(growing_);
  // Another thread may have learned of it.
  if (const snapshot now = current(); now->meta.cuts <= stated) replace(after_cut(*store_, *now));
}

bool growing_file::leave() {
  const lock_guard growing(growing_);
  return std::exchange(claim_, nullptr) != nullptr;
}

void growing_file::give_back() {
  const lock_guard growing(growing_);
  const snapshot f = refreshed();
  if (f->meta.reserved > f->meta.size) replace(store_->give_back(*f));
}

}  // namespace ooc::storage
