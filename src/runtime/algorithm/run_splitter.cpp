#include "runtime/algorithm/run_splitter.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <queue>

namespace ooc::detail {

/// The last two elements of a run that were looked at.
struct run_splitter::held_run {
  struct slot {
    std::byte* memory = nullptr;
    std::optional<std::uint64_t> number;
    direct_transfer read;
  };
  std::array<slot, 2> slots;
  std::size_t last = 0;  ///< looked at

  slot* find(std::uint64_t number) {
    for (slot& s : slots)
      if (s.number == number) return &s;
    return nullptr;
  }
};

run_splitter::run_splitter(const sort_program& program, const element_file& file, std::span<const run_part> runs,
                           std::byte* memory)
    : program_(program), file_(file), runs_(runs) {
  for (std::size_t k = 0; k < runs.size(); ++k) {
    held_.push_back(std::make_unique<held_run>());
    for (auto& s : held_.back()->slots) {
      s.memory = memory;
      memory += file.element_size();
    }
  }
}

run_splitter::~run_splitter() = default;

std::vector<std::uint64_t> run_splitter::split(std::uint64_t count) {
  std::uint64_t longest = 1;
  for (const run_part& r : runs_) longest = std::max(longest, r.size());
  chosen_.assign(runs_.size(), 0);
  bool all_chosen = true;  // there are none at the step before the first
  for (std::uint64_t step = std::bit_floor(longest); step != 0; step /= 2) {
    const std::uint64_t wanted = count / step;
    std::uint64_t there = 0;
    for (const run_part& r : runs_) there += r.size() / step;
    if (all_chosen)
      for (std::size_t k = 0; k < runs_.size(); ++k) chosen_[k] = runs_[k].size() / step;
    else
      choose_before_last(step);
    all_chosen = wanted >= there;
    if (all_chosen) {
      for (std::size_t k = 0; k < runs_.size(); ++k) chosen_[k] = runs_[k].size() / step;
      continue;
    }
    const std::uint64_t now = std::accumulate(chosen_.begin(), chosen_.end(), std::uint64_t{0});
    if (now < wanted)
      add(step, wanted - now);
    else
      take_back(step, now - wanted);
  }
  return chosen_;
}

/// From the choice at 2 step to a choice at `step`: all that come before the last one that is chosen.
void run_splitter::choose_before_last(std::uint64_t step) {
  std::optional<sample> last;
  std::vector<sample> between;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    const std::uint64_t before = chosen_[k] * 2 * step;
    chosen_[k] *= 2;
    if (before != 0) begin_read({k, before - 1});
  }
  for (std::size_t k = 0; k < runs_.size(); ++k)
    if (chosen_[k] != 0)
      if (const sample s{k, chosen_[k] * step - 1}; !last || comes_before(*last, s)) last = s;
  if (!last) return;
  for (std::size_t k = 0; k < runs_.size(); ++k) {
    const sample s{k, (chosen_[k] + 1) * step - 1};
    if (s.number >= runs_[k].size()) continue;
    element(*last);  // which stays held while that of its own run is read
    begin_read(s);
    between.push_back(s);
  }
  for (const sample& s : between)
    if (comes_before(s, *last)) ++chosen_[s.run];
}

void run_splitter::add(std::uint64_t step, std::uint64_t count) {
  const auto later = [this](const sample& x, const sample& y) { return comes_before(y, x); };
  std::vector<sample> next;
  for (std::size_t k = 0; k < runs_.size(); ++k)
    if (const sample s{k, (chosen_[k] + 1) * step - 1}; s.number < runs_[k].size()) {
      begin_read(s);
      next.push_back(s);
    }
  std::priority_queue<sample, std::vector<sample>, decltype(later)> queue(later, std::move(next));
  for (; count > 0; --count) {
    sample s = queue.top();
    queue.pop();
    ++chosen_[s.run];
    s.number += step;
    if (s.number < runs_[s.run].size()) queue.push(s);
  }
}

void run_splitter::take_back(std::uint64_t step, std::uint64_t count) {
  if (count == 0) return;
  const auto earlier = [this](const sample& x, const sample& y) { return comes_before(x, y); };
  std::vector<sample> last;
  for (std::size_t k = 0; k < runs_.size(); ++k)
    if (chosen_[k] != 0) {
      last.push_back({k, chosen_[k] * step - 1});
      begin_read(last.back());
    }
  std::priority_queue<sample, std::vector<sample>, decltype(earlier)> queue(earlier, std::move(last));
  for (; count > 0; --count) {
    sample s = queue.top();
    queue.pop();
    if (--chosen_[s.run] == 0) continue;
    s.number -= step;
    queue.push(s);
  }
}

void run_splitter::begin_read(sample s) {
  held_run& h = *held_[s.run];
  if (h.find(s.number)) return;
  held_run::slot& to = h.slots[1 - h.last];
  to.read.wait();
  to.number.reset();
  to.read.begin_read(file_, runs_[s.run].first + s.number, 1, to.memory);
  to.number = s.number;
}

const std::byte* run_splitter::element(sample s) {
  begin_read(s);
  held_run& h = *held_[s.run];
  held_run::slot* const at = h.find(s.number);
  h.last = static_cast<std::size_t>(at - h.slots.data());
  at->read.wait();
  return at->memory;
}

bool run_splitter::comes_before(sample x, sample y) {
  if (x.run == y.run) return x.number < y.number;
  const std::byte* const a = element(x);
  const std::byte* const b = element(y);
  return x.run < y.run ? !program_.less(b, a) : program_.less(a, b);
}

}  // namespace ooc::detail
