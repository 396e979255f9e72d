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

std::size_t box_move::elements() const noexcept { return product(to_lower, to_upper); }

std::size_t box_pipeline::box_bytes(const pipeline_plan& p, std::size_t element_size) {
  return in_whole_pages(p.elements * element_size);
}

std::uint64_t box_pipeline::elements_for(const pipeline_plan& p, std::uint64_t memory) {
  const std::uint64_t boxes = (readers + writers) * p.boxes;
  const std::uint64_t bytes = memory > boxes * page_bytes ? memory - boxes * page_bytes : 0;  // rounded up
  const std::uint64_t of_element = p.boxes * (readers * p.from_size + writers * p.to_size);
  return bytes / of_element;
}

std::uint64_t box_pipeline::memory_bytes() const noexcept {
  return plan_.boxes * (readers * box_bytes(plan_, plan_.from_size) + writers * box_bytes(plan_, plan_.to_size));
}

box_pipeline::box_pipeline(pipeline_plan plan, algorithm_call& call)
    : plan_(std::move(plan)), call_(call), moves_(readers + writers) {}

/// Of the unit that is turned.
std::byte* box_pipeline::read_to(std::size_t box) const noexcept {
  return units_->buffer(turned_) + box * box_bytes(plan_, plan_.from_size);
}

std::byte* box_pipeline::write_from(std::size_t box) const noexcept {
  if (plan_.as_it_is) return read_to(box);
  return turned_to_ + (turned_ % writers * plan_.boxes + box) * box_bytes(plan_, plan_.to_size);
}

void box_pipeline::run(const direct_array& from, const direct_array& to, std::byte* memory) {
  from_ = &from;
  to_ = &to;
  const std::size_t unit_bytes = plan_.boxes * box_bytes(plan_, plan_.from_size);
  turned_to_ = memory + readers * unit_bytes;
  units_.emplace(plan_.as_it_is ? readers + writers : readers, readers);
  units_->use(memory, unit_bytes);
  turned_parts_.emplace(parts_of_box * plan_.boxes, 0);
  // Nothing is on its way when the caller frees the memory, also after an error.
  const std::unique_ptr<box_pipeline, void (*)(box_pipeline*)> end(this, [](box_pipeline* p) {
    p->units_.reset();
    p->turned_parts_.reset();
  });
  work_in_rounds(
      plan_.as_it_is ? 1 : call_.threads(), [this] { return next(); },
      [this] { return [this](std::size_t task) { turn(task); }; });
}

/// A task of the part that begin_turning() was given last.
void box_pipeline::turn(std::size_t task) {
  const std::size_t end = std::min((task + 1) * batch_, now_->tasks());
  const std::size_t box = parts_[part_].box;
  for (std::size_t t = task * batch_; t < end; ++t) now_->run(t, read_to(box), write_from(box));
}

/// Goes on to the next part that is to be turned, and returns its tasks; 0 where all is done.
std::size_t box_pipeline::next() {
  if (std::exchange(turning_, false)) begin_write(part_++);
  for (; turned_ < plan_.units; ++turned_, part_ = 0) {
    if (part_ == 0) {
      units_->read(turned_, plan_.units,
                   [this](std::uint64_t unit, direct_transfer& t, std::byte* to) { begin_read(unit, t, to); });
      list_parts();
    }
    for (; part_ < parts_.size(); begin_write(part_++)) {
      if (plan_.as_it_is) continue;
      wait_for_memory();
      const std::size_t tasks = begin_turning(parts_[part_]);
      if (tasks > 1) {
        turning_ = true;
        return tasks;
      }
      turn(0);  // sooner than anybody would be awake
    }
  }
  wait_for_writes();
  return 0;
}

void box_pipeline::wait_for_writes() {
  units_->wait();
  turned_parts_->wait();
}

/// For the unit before, which is written from the memory that the next part is turned into.
void box_pipeline::wait_for_memory() {
  if (alike_)
    turned_parts_->fill(part_);
  else if (part_ == 0)
    wait_for_writes();
}

void box_pipeline::begin_read(std::size_t unit, direct_transfer& t, std::byte* memory) {
  std::vector<box_move>& boxes = moves_[unit % moves_.size()];
  boxes = plan_.unit(unit);
  for (std::size_t b = 0; b < boxes.size(); ++b, memory += box_bytes(plan_, plan_.from_size))
    for (const part_of_box& p : cut(b, boxes[b].from_lower, boxes[b].from_upper, plan_.from_unit, plan_.from_size))
      t.begin_read(from_->file(), from_->box({p.lower, p.upper}), memory + p.offset);
}

/// The parts of the unit that is turned next.
void box_pipeline::list_parts() {
  const std::vector<part_of_box> before = std::exchange(parts_, {});
  const std::vector<box_move>& boxes = moves_[turned_ % moves_.size()];
  for (std::size_t b = 0; b < boxes.size(); ++b)
    for (part_of_box& p : cut(b, boxes[b].to_lower, boxes[b].to_upper, plan_.to_unit, plan_.to_size))
      parts_.push_back(std::move(p));
  alike_ = std::equal(parts_.begin(), parts_.end(), before.begin(), before.end(),
                      [](const part_of_box& p, const part_of_box& q) {
                        return p.box == q.box && p.offset == q.offset && p.bytes == q.bytes;
                      });
}

void box_pipeline::begin_write(std::size_t part) {
  const part_of_box& p = parts_[part];
  direct_transfer& t = plan_.as_it_is ? units_->write(turned_) : turned_parts_->write(part);
  t.begin_write(to_->file(), to_->box({p.lower, p.upper}), write_from(p.box) + p.offset);
  call_.advance(p.bytes / plan_.to_size * (plan_.from_size + plan_.to_size));
}

std::size_t box_pipeline::begin_turning(const part_of_box& p) {
  const box_move& whole = moves_[turned_ % moves_.size()][p.box];
  extent_list extents;
  for (std::size_t k = 0; k < p.lower.size(); ++k) extents.push_back(whole.to_upper[k] - whole.to_lower[k]);
  now_.emplace(extents, box_permutation::part{p.dimension, p.first, p.last}, plan_.permutation, plan_.kernel,
               plan_.from_size, plan_.to_size);
  const std::size_t rounds = std::clamp<std::size_t>(p.bytes / plan_.to_size / elements_of_task, 1, tasks_of_round);
  batch_ = (now_->tasks() + rounds - 1) / rounds;
  return (now_->tasks() + batch_ - 1) / batch_;
}

/// A box in parts, cut along its first dimension that is not 1, so that each of them is packed too.
std::vector<box_pipeline::part_of_box> box_pipeline::cut(std::size_t box, const extent_list& lower,
                                                         const extent_list& upper, const extent_list& multiple,
                                                         std::size_t element_size) {
  std::size_t k = 0;
  while (k + 1 < lower.size() && upper[k] - lower[k] == 1) ++k;
  const std::uint64_t bytes = product(lower, upper) * element_size;
  const std::size_t extent = upper[k] - lower[k];
  const std::size_t row = bytes / extent;
  const std::uint64_t parts = std::clamp<std::uint64_t>(bytes / least_part, 1, parts_of_box);
  const std::size_t begin = lower[k] / multiple[k] * multiple[k];  // of the parts, so that there are not more of them
  const std::size_t step = ((upper[k] - begin + parts - 1) / parts + multiple[k] - 1) / multiple[k] * multiple[k];
  std::vector<part_of_box> all;
  for (std::size_t at = lower[k], end = 0; at < upper[k]; at = end) {
    end = std::min(at / multiple[k] * multiple[k] + step, upper[k]);
    part_of_box& p = all.emplace_back(
        part_of_box{box, lower, upper, k, at - lower[k], end - lower[k], (at - lower[k]) * row, (end - at) * row});
    p.lower[k] = at;
    p.upper[k] = end;
  }
  return all;
}

}  // namespace ooc::detail
