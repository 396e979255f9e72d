#include "runtime/algorithm/run_merger.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ooc::detail {
namespace {

/// A part of a batch that is worth a thread, and fits in its cache.
constexpr std::size_t part_bytes = 128 << 10;
/// Elements of each run, on average, for which a part's places are worth looking for.
constexpr std::size_t part_of_run = 64;

}  // namespace

/// A run.
struct run_merger::source {
  const std::byte* at = nullptr;  ///< the window
  std::size_t left = 0;
  std::uint64_t next = 0;  ///< of the file, to be read
  std::uint64_t end = 0;
  std::uint64_t current = 0;      ///< piece
  std::size_t count[2] = {0, 0};  ///< of this piece and the next one, by their buffers
  buffered_stream pieces{2, 2};

  bool has_next() const noexcept { return count[(current + 1) % 2] != 0; }
  /// The reads of pieces before this one, of at most so many elements.
  void begin_reads(std::uint64_t until, const element_file& f, std::size_t most) {
    pieces.begin_reads(until, [&](std::uint64_t n, direct_transfer& t, std::byte* to) {
      const std::size_t c = count[n % 2] = static_cast<std::size_t>(std::min<std::uint64_t>(most, end - next));
      if (c != 0) t.begin_read(f, next, c, to);
      next += c;
    });
  }
  void show() {
    at = pieces.arrived(current);
    left = count[current % 2];
  }
};

run_merger::run_merger(const sort_program& program, const sort_plan& plan, std::byte* memory, thread_team& team,
                       algorithm_call& call)
    : program_(program),
      plan_(plan),
      size_(program.element_size()),
      team_(team),
      call_(call),
      buffers_(memory + sort_plan::outputs * plan.output * size_) {
  outputs_.use(memory, plan.output * size_);
}

run_merger::~run_merger() = default;

void run_merger::merge(const element_file& from, std::span<const run_part> runs, const element_file& to,
                       std::uint64_t place) {
  from_ = &from;
  to_ = &to;
  sources_.clear();
  std::byte* memory = buffers_;
  for (const run_part& r : runs) {
    if (r.size() == 0) continue;
    auto s = std::make_unique<source>();
    s->next = r.first;
    s->end = r.end;
    s->pieces.use(memory, plan_.piece * size_);
    memory += 2 * plan_.piece * size_;
    sources_.push_back(std::move(s));
  }
  // The first pieces differ in length, so that runs come to the end of a piece one after the other: reads and writes
  // alternate then, instead of reads of all runs at once that the writes have to wait for.
  for (std::size_t k = 0; k < sources_.size(); ++k) {
    source& s = *sources_[k];
    const std::uint64_t share = (k + 1) * std::uint64_t{plan_.piece} / sources_.size();
    const std::uint64_t whole = (s.next + share + plan_.granule - 1) / plan_.granule * plan_.granule;
    s.begin_reads(1, from, static_cast<std::size_t>(std::min<std::uint64_t>(plan_.piece, whole - s.next)));
  }
  for (const auto& s : sources_) s->begin_reads(2, from, plan_.piece);
  for (const auto& s : sources_) s->show();
  merge_all(place);
}

void run_merger::merge(std::span<const sorted_window> runs, const element_file& to) {
  from_ = nullptr;
  to_ = &to;
  sources_.clear();
  for (const sorted_window& w : runs) {
    sources_.push_back(std::make_unique<source>());
    sources_.back()->at = w.first;
    sources_.back()->left = w.count;
  }
  merge_all(0);
}

void run_merger::merge_all(std::uint64_t first) {
  place_ = first;
  filled_ = 0;
  for (;;) {
    refill();
    if (sources_.empty()) break;
    if (plan_.output - filled_ < std::max(plan_.output / 2, sources_.size())) flush(false);
    const std::size_t total = cut(plan_.output - filled_);
    merge_batch(total);
    filled_ += total;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      sources_[k]->at += counts_[k] * size_;
      sources_[k]->left -= counts_[k];
    }
  }
  flush(true);
  outputs_.wait();
}

void run_merger::refill() {
  bool ended = false;
  for (auto& s : sources_) {
    if (s->left != 0) continue;
    if (!s->has_next()) {
      s.reset();
      ended = true;
      continue;
    }
    ++s->current;
    s->begin_reads(s->current + 2, *from_, plan_.piece);
    s->show();
  }
  if (ended) std::erase(sources_, nullptr);
}

/// Chooses a batch of at most `room` elements, at least one.
std::size_t run_merger::cut(std::size_t room) {
  const std::size_t share = std::max<std::size_t>(1, room / sources_.size());
  const bool one_only = room < sources_.size();
  windows_.clear();
  for (const auto& s : sources_)
    windows_.push_back({s->at, std::min(s->left, share), one_only || s->left > share || s->has_next()});
  counts_.resize(windows_.size());
  if (const std::size_t least = program_.least_last(windows_); least < windows_.size()) {
    program_.before(windows_, least, windows_[least].count - 1, counts_.data());
    ++counts_[least];
  } else {
    for (std::size_t k = 0; k < windows_.size(); ++k) counts_[k] = windows_[k].count;
  }
  for (std::size_t k = 0; k < windows_.size(); ++k) windows_[k].count = counts_[k];
  return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0});
}

void run_merger::merge_batch(std::size_t total) {
  std::byte* const to = outputs_.buffer(output_) + filled_ * size_;
  const std::size_t most = std::max(2 * team_.size(), total / (part_of_run * windows_.size()));
  const std::size_t parts = std::clamp<std::size_t>(total * size_ / part_bytes, 1, most);
  if (parts == 1) return program_.merge(windows_, to);
  const auto longest = static_cast<std::size_t>(std::max_element(counts_.begin(), counts_.end()) - counts_.begin());
  std::vector<std::vector<std::size_t>> begins(parts + 1, std::vector<std::size_t>(counts_.size()));
  begins[parts] = counts_;
  team_.run(parts - 1, [&](std::size_t p) {
    program_.before(windows_, longest, counts_[longest] * (p + 1) / parts, begins[p + 1].data());
  });
  team_.run(parts, [&](std::size_t p) {
    std::vector<sorted_window> w(windows_.size());
    for (std::size_t k = 0; k < w.size(); ++k)
      w[k] = {windows_[k].first + begins[p][k] * size_, begins[p + 1][k] - begins[p][k]};
    const std::size_t before = std::accumulate(begins[p].begin(), begins[p].end(), std::size_t{0});
    program_.merge(w, to + before * size_);
  });
}

/// Writes what is filled, up to where a chunk of the file ends; the rest begins the next output.
void run_merger::flush(bool last) {
  const std::uint64_t whole = (place_ + filled_) / plan_.granule * plan_.granule;
  if (filled_ == 0 || (!last && whole <= place_)) return;  // not yet to the end of the first granule
  const std::size_t count = last ? filled_ : static_cast<std::size_t>(whole - place_);
  const std::byte* const from = outputs_.buffer(output_);
  outputs_.write(output_).begin_write(*to_, place_, count, from);
  call_.advance(2 * count * size_);
  filled_ -= count;
  std::memcpy(outputs_.fill(++output_), from + count * size_, filled_ * size_);
  place_ += count;
}

}  // namespace ooc::detail
