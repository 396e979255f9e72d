#include "mount/outgoing_write.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "mount/error_number.hpp"
#include "storage/base/log.hpp"

namespace ooc::mount {

namespace {

/// The part of it before `end`.
request part_before(const request& r, std::uint64_t end) {
  request part;
  r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t n) {
    if (at < end) part.add(at, memory, std::min(n, end - at));
  });
  return part;
}

/// Its bytes in the file, in their order.
std::vector<range_queue::range> ranges_of(const request& r) {
  std::vector<range_queue::range> ranges;
  r.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t n) {
    if (!ranges.empty() && ranges.back().end == at)
      ranges.back().end += n;
    else
      ranges.push_back({at, at + n});
  });
  return ranges;
}

}  // namespace

int make_room(storage::growing_file& file, std::uint64_t end, bool stream, bool ask) {
  using duration = storage::growing_file::clock::duration;
  try {
    file.make_room(end, stream, ask ? duration::zero() : asked_anew);
    return 0;
  } catch (...) {
    return file.current()->meta.array.extents.empty() ? error_number() : EFBIG;
  }
}

outgoing_write::outgoing_write(write_buffer& from, storage::growing_file& file, job_threads<>& jobs, range_queue& queue)
    : file_(file), jobs_(jobs), queue_(queue), stream_(from.full()) {
  wanted_ = std::make_shared<const request>(from.wanted());
  bytes_ = wanted_->bytes();
  auto ranges = ranges_of(*wanted_);
  begin_ = ranges.front().begin;
  place_ = queue_.enter(std::move(ranges), true);
  memory_ = from.release();
}

void outgoing_write::send(bool seen_soon, std::function<void(int error)> ended) {
  ended_ = std::move(ended);
  if (const int error = make_room(file_, wanted_->file_end(), stream_, seen_soon)) {
    auto inside = part_before(*wanted_, file_.room());
    if (inside.empty()) return ended_(error);
    wanted_ = std::make_shared<const request>(std::move(inside));
    lost_ = error;
  }
  queue_.start(place_, [self = shared_from_this()] { self->store(); });
}

void outgoing_write::post(void (outgoing_write::*step)()) {
  jobs_.post([self = shared_from_this(), step] { (self.get()->*step)(); });
}

void outgoing_write::store_in_room() {
  if (const int error = make_room(file_, wanted_->file_end(), false, false)) return ended_(error);
  store();
}

void outgoing_write::store() {
  try {
    sent_as_ = file_.current();
    // It may have been cut off while this waited for its turn.
    if (wanted_->file_end() > std::min(file_.room(), sent_as_->file->shape().size))
      return post(&outgoing_write::store_in_room);
    sent_as_->file->write(wanted_, memory_.data.get(),
                          [self = shared_from_this()](const failure& f) { self->acknowledged(f); });
  } catch (...) {
    ended_(error_number());
  }
}

void outgoing_write::acknowledged(const failure& f) {
  if (f.code == errc::cut_off) return post(&outgoing_write::store_after_cut);
  if (f.code == std::errc::no_space_on_device && !std::exchange(found_no_space_, true))
    return post(&outgoing_write::store_after_removals);
  if (f) detail::log_error("mount: " + f.what);
  if (!f) stored_ = {wanted_->file_end(), sent_as_->meta};
  ended_(f ? error_number(f) : lost_);
}

void outgoing_write::store_after_cut() {
  try {
    file_.learn_of_cut(sent_as_->meta);
  } catch (...) {
    return ended_(error_number());
  }
  store_in_room();
}

void outgoing_write::store_after_removals() {
  file_.store().removals().finish();
  store();
}

}  // namespace ooc::mount
