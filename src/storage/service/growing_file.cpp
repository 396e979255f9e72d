#include "storage/service/growing_file.hpp"

#include <cassert>
#include <utility>

#include "storage/base/invariants.hpp"
#include "storage/base/refuse.hpp"
#include "storage/service/writer_claim.hpp"

namespace ooc::storage {

void growing_file::open(opened_file f, std::shared_ptr<void> claim) {
  const lock_guard growing(growing_);
  const lock_guard lock(mutex_);
  const invariants_hold at_end(*this);
  if (claim) claim_.swap(claim);  // the earlier one goes when the mutex is free
  now_ = std::make_shared<const opened_file>(std::move(f));
  asked_at_ = clock::now();
}

#ifndef NDEBUG
void growing_file::check_invariants() const {
  assert(now_ || (!claim_ && !asked_at_));
  if (!now_) return;
  assert(now_->file->shape().id == now_->meta.id);
  assert(allocated_size(now_->meta) <= now_->file->shape().size);
}
#endif

growing_file::snapshot growing_file::current() const {
  const lock_guard lock(mutex_);
  return now_;
}

bool growing_file::keep(const snapshot& next, const snapshot& before) {
  const lock_guard lock(mutex_);
  const invariants_hold at_end(*this);
  if (now_ != before) return false;
  assert(stored_end(0, now_->meta).state() <= stored_end(0, next->meta).state());
  now_ = next;
  asked_at_ = clock::now();
  return true;
}

growing_file::snapshot growing_file::refreshed() {
  for (;;) {
    const snapshot before = current(), next = std::make_shared<const opened_file>(store_->refresh(*before));
    if (keep(next, before)) return next;
  }
}

// Where something else was asked for meanwhile, nobody knows which is newer.
growing_file::snapshot growing_file::changed(const snapshot& before, opened_file f) {
  auto next = std::make_shared<const opened_file>(std::move(f));
  if (!keep(next, before)) forget_size();
  return next;
}

growing_file::snapshot growing_file::known(clock::duration age) const {
  const lock_guard lock(mutex_);
  return asked_at_ && clock::now() - *asked_at_ < age ? now_ : nullptr;
}

std::uint64_t growing_file::room() const {
  const lock_guard lock(mutex_);
  return claim_ ? allocated_size(now_->meta) : now_->meta.size;
}

growing_file::snapshot growing_file::reaching(std::uint64_t end, clock::duration age) {
  if (snapshot f = known(); f && f->meta.size >= end) return f;
  if (snapshot f = known(age)) return f;
  return refreshed();
}

void growing_file::forget_size() {
  const lock_guard lock(mutex_);
  asked_at_.reset();
}

bool growing_file::take_claim() {
  if (has_claim()) return true;
  auto taken = claim_to_write(*store_, current()->meta.id, true);
  const lock_guard lock(mutex_);
  claim_ = std::move(taken);
  asked_at_.reset();  // what others had reserved may be gone
  return claim_ != nullptr;
}

bool growing_file::has_claim() const {
  const lock_guard lock(mutex_);
  return claim_ != nullptr;
}

bool growing_file::claim() {
  const lock_guard growing(growing_);
  return take_claim();
}

growing_file::snapshot growing_file::grown_to(std::uint64_t end) {
  if (snapshot f = known(); f && f->meta.size >= end) return f;
  const lock_guard growing(growing_);
  const snapshot f = reaching(end);
  if (f->meta.size >= end) return f;
  const auto grow = [&](std::uint64_t reserved) { return store_->grow(*f, end, reserved); };
  const bool again = std::exchange(grew_, true);
  return changed(f, again && take_claim() ? with_space_if_there_is(end, grow) : grow(0));
}

void growing_file::make_room(std::uint64_t end, bool stream, clock::duration age) {
  const lock_guard growing(growing_);
  if (room() >= end && !known(age)) (void)refreshed();
  if (room() >= end) return;
  const bool claimed = stream ? take_claim() : has_claim();
  const snapshot f = current();
  const auto reserve = [&](std::uint64_t reserved) { return store_->reserve(*f, end, reserved); };
  (void)changed(f, !claimed ? store_->grow(*f, end) : stream ? with_space_if_there_is(end, reserve) : reserve(end));
}

void growing_file::show(const stored_end& stored, const wish& w) {
  const lock_guard growing(growing_);
  const snapshot f = refreshed();
  entry_change change = w(f->meta);
  const file_id id = f->meta.id;
  if (stored.end > f->meta.size && stored.end <= allocated_size(f->meta) &&
      stored.state() >= stored_end(0, f->meta).state())
    change.size_at_least = stored.end;
  std::uint64_t size = 0;
  try {
    size = store_->change(id, change).size;
  } catch (const error& e) {
    if (!change.size_at_least || e.code() != std::errc::invalid_argument) throw;
    change.size_at_least.reset();  // cut off in this moment
    size = store_->change(id, change).size;
  }
  if (size < f->meta.size || size > f->file->shape().size || !seen_to(f, size)) (void)refreshed();
}

bool growing_file::seen_to(const snapshot& f, std::uint64_t end) {
  opened_file longer = *f;
  longer.meta.size = end;
  return keep(std::make_shared<const opened_file>(std::move(longer)), f);
}

void growing_file::resize(std::uint64_t size) {
  const lock_guard growing(growing_);
  const snapshot f = current();
  if (!f->meta.array.extents.empty())
    refuse(errc::invalid_request, f->meta.path,
           "it holds an array, whose size follows from its extents; resize the array");
  // Also where the size stays: others may have stored bytes behind it, which go.
  (void)changed(f, store_->resize(*f, size, {}));
}

failure growing_file::write(const request& r, const std::byte* memory) {
  for (;;) {
    const snapshot f = grown_to(r.file_end());
    const failure e = f->file->write(r, memory);
    if (e.code != errc::cut_off) return e;
    learn_of_cut(f->meta);
  }
}

void growing_file::learn_of_cut(const entry& stated) {
  const lock_guard growing(growing_);
  // Another thread may have learned of it, or of a move, after which cuts are counted anew.
  if (const snapshot f = current(); stored_end(0, f->meta).state() <= stored_end(0, stated).state())
    (void)changed(f, after_cut(*store_, *f));
}

bool growing_file::leave() {
  const lock_guard growing(growing_);
  std::shared_ptr<void> left;  // goes when the mutex is free: that may tell the metadata service
  const lock_guard lock(mutex_);
  left.swap(claim_);
  return left != nullptr;
}

void growing_file::give_back() {
  const lock_guard growing(growing_);
  const snapshot f = current();
  const opened_file now = store_->refresh(*f);
  (void)changed(f, now.meta.names != 0 && now.meta.reserved > now.meta.size ? store_->give_back(now) : now);
}

}  // namespace ooc::storage
