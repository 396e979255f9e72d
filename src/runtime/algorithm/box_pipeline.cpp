#include "runtime/algorithm/box_pipeline.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/algorithm/work_in_rounds.hpp"
#include "storage/base/page.hpp"

namespace ooc::detail {
namespace {

// Units that are being read or turned, and being turned or written.  As it is: all of them
// together.  With fewer of them boxes are larger, and see longer runs; the disk has reads and
// writes at once all the same.
constexpr std::size_t readers = 2;
constexpr std::size_t writers = 1;

// A box goes in several requests, so that one is checked while another is transferred.
constexpr std::size_t parts_of_box = 4;
constexpr std::uint64_t least_part = 1 << 20;

constexpr std::size_t tasks_of_round = 64;
constexpr std::size_t elements_of_task = 1 << 14;  // at least

std::size_t product(const extent_list& lower, const extent_list& upper) {
  std::size_t n = 1;
  for (std::size_t k = 0; k < lower.size(); ++k) n *= upper[k] - lower[k];
  return n;
}

}  // namespace

std::size_t box_move::elements() const noexcept {
  return product(to_lower, to_upper);
}

std::size_t box_pipeline::slot_bytes(const pipeline_plan& p, std::size_t element_size) {
  return in_whole_pages(p.elements * element_size);
}

std::uint64_t box_pipeline::elements_for(const pipeline_plan& p, std::uint64_t memory) {
  const std::uint64_t slots = (readers + writers) * p.boxes;
  const std::uint64_t bytes = memory > slots * page_bytes ? memory - slots * page_bytes : 0;  // rounded up
  const std::uint64_t of_element = p.boxes * (readers * p.from_size + writers * p.to_size);
  return bytes / of_element;
}

std::uint64_t box_pipeline::memory_bytes() const noexcept {
  return plan_.boxes * (readers * slot_bytes(plan_, plan_.from_size) +
                        writers * slot_bytes(plan_, plan_.to_size));
}

box_pipeline::box_pipeline(pipeline_plan plan, algorithm_call& call)
    : plan_(std::move(plan)),
      call_(call),
      moves_(readers + writers),
      transfers_(2 * (readers + writers)) {}

std::size_t box_pipeline::slot_of_read(std::size_t unit) const noexcept {
  return unit % (plan_.as_it_is ? readers + writers : readers);
}

std::size_t box_pipeline::slot_of_write(std::size_t unit) const noexcept {
  return readers + writers + unit % (plan_.as_it_is ? readers + writers : writers);
}

std::byte* box_pipeline::read_to(std::size_t unit, std::size_t box) const noexcept {
  return memory_ + (slot_of_read(unit) * plan_.boxes + box) * slot_bytes(plan_, plan_.from_size);
}

std::byte* box_pipeline::write_from(std::size_t unit, std::size_t box) const noexcept {
  if (plan_.as_it_is) return read_to(unit, box);
  return memory_ + readers * plan_.boxes * slot_bytes(plan_, plan_.from_size) +
         (unit % writers * plan_.boxes + box) * slot_bytes(plan_, plan_.to_size);
}

void box_pipeline::run(const direct_array& from, const direct_array& to, std::byte* memory) {
  from_ = &from;
  to_ = &to;
  memory_ = memory;
  const struct all_ended {  // after an error too; the caller frees the memory
    open_transfers& transfers;
    ~all_ended() { transfers.wait_for_all(); }
  } end{transfers_};
  work_in_rounds(
      plan_.as_it_is ? 1 : call_.threads(), [this] { return next(); },
      [this] { return [this](std::size_t task) { turn(task); }; });
}

/// A task of the unit that begin_turning() was given last.
void box_pipeline::turn(std::size_t task) {
  const std::size_t end = std::min((task + 1) * batch_, tasks_);
  for (std::size_t t = task * batch_; t < end; ++t) {
    const work_of_box& w = t < now_.front().tasks ? now_.front() : now_.back();
    w.permutation.run(t - w.first_task, w.from, w.to);
  }
}

/// Goes on to the next unit that is to be turned, and returns its tasks; 0 where all is done.
std::size_t box_pipeline::next() {
  if (std::exchange(turning_, false)) {
    begin_write(turned_);
    ++turned_;
  }
  while (turned_ < plan_.units) {
    begin_reads();
    throw_if(transfers_.wait_for(slot_of_read(turned_)));
    if (!plan_.as_it_is) {
      throw_if(transfers_.wait_for(slot_of_write(turned_)));  // whose slot this was
      const std::size_t tasks = begin_turning(turned_);
      if (tasks > 1) {
        turning_ = true;
        return tasks;
      }
      turn(0);  // sooner than anybody would be awake
    }
    begin_write(turned_);
    ++turned_;
  }
  for (std::size_t slot = readers + writers; slot < 2 * (readers + writers); ++slot)
    throw_if(transfers_.wait_for(slot));
  return 0;
}

void box_pipeline::begin_reads() {
  for (; read_ < std::min(turned_ + readers, plan_.units); ++read_) {
    if (plan_.as_it_is)  // what is written from the same memory
      throw_if(transfers_.wait_for(slot_of_write(read_)));
    std::vector<box_move>& boxes = moves_[read_ % moves_.size()];
    boxes = plan_.unit(read_);
    for (std::size_t b = 0; b < boxes.size(); ++b) {
      std::byte* const memory = read_to(read_, b);
      in_parts(boxes[b].from_lower, boxes[b].from_upper, plan_.from_unit, plan_.from_size,
               slot_of_read(read_), [&](box_view part, std::size_t offset, auto done) {
                 from_->file().read(std::make_shared<const request>(from_->box(part)), memory + offset, std::move(done));
               });
      bytes_read_ += boxes[b].elements() * plan_.from_size;
    }
  }
}

void box_pipeline::begin_write(std::size_t unit) {
  const std::vector<box_move>& boxes = moves_[unit % moves_.size()];
  std::uint64_t moved = 0;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    const std::byte* const memory = write_from(unit, b);
    in_parts(boxes[b].to_lower, boxes[b].to_upper, plan_.to_unit, plan_.to_size,
             slot_of_write(unit), [&](box_view part, std::size_t offset, auto done) {
               to_->file().write(std::make_shared<const request>(to_->box(part)), memory + offset, std::move(done));
             });
    bytes_written_ += boxes[b].elements() * plan_.to_size;
    moved += boxes[b].elements() * (plan_.from_size + plan_.to_size);
  }
  call_.advance(moved);
}

std::size_t box_pipeline::begin_turning(std::size_t unit) {
  const std::vector<box_move>& boxes = moves_[unit % moves_.size()];
  now_.clear();
  tasks_ = 0;
  std::size_t elements = 0;
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    extent_list extents;
    for (std::size_t k = 0; k < boxes[b].to_lower.size(); ++k)
      extents.push_back(boxes[b].to_upper[k] - boxes[b].to_lower[k]);
    box_permutation permutation(extents, plan_.permutation, plan_.kernel, plan_.from_size,
                                plan_.to_size);
    const std::size_t tasks = permutation.tasks();
    now_.push_back({std::move(permutation), read_to(unit, b), write_from(unit, b), tasks_, tasks});
    tasks_ += tasks;
    elements += boxes[b].elements();
  }
  const std::size_t rounds =
      std::clamp<std::size_t>(elements / elements_of_task, 1, tasks_of_round);
  batch_ = (tasks_ + rounds - 1) / rounds;
  return (tasks_ + batch_ - 1) / batch_;
}

/// Calls begin(part, its offset in memory, completion) for parts of a box, cut along its first
/// dimension that is not 1, so that each of them is packed too.
template <class Begin>
void box_pipeline::in_parts(const extent_list& lower, const extent_list& upper,
                            const extent_list& multiple, std::size_t element_size,
                            std::size_t slot, Begin begin) {
  std::size_t k = 0;
  while (k + 1 < lower.size() && upper[k] - lower[k] == 1) ++k;
  const std::uint64_t bytes = product(lower, upper) * element_size;
  const std::size_t extent = upper[k] - lower[k];
  const std::size_t row = bytes / extent;
  const std::uint64_t parts = std::clamp<std::uint64_t>(bytes / least_part, 1, parts_of_box);
  const std::size_t step =
      ((extent + parts - 1) / parts + multiple[k] - 1) / multiple[k] * multiple[k];
  extent_list first = lower, last = upper;
  for (std::size_t at = lower[k]; at < upper[k]; at = last[k]) {
    first[k] = at;
    last[k] = std::min((at / multiple[k]) * multiple[k] + step, upper[k]);
    transfers_.begin(slot);
    try {
      begin(box_view{first, last}, (at - lower[k]) * row,
            [this, slot](const failure& f) { transfers_.end(slot, f); });
    } catch (...) {
      transfers_.end(slot, {});
      throw;
    }
  }
}

}  // namespace ooc::detail
