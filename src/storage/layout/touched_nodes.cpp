#include "storage/layout/touched_nodes.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace ooc::storage {

namespace {

class search {
 public:
  explicit search(const striping& s)
      : sf_(s.sf), nn_(s.nn), period_(s.sf * s.nn), touched_(s.nn, false), missing_(s.nn) {}

  void add(const nested_request& n) {
    if (missing_ == 0) return;
    std::uint64_t offset = n.file_offset % period_;
    std::uint64_t run = n.run;
    std::vector<stride_level> levels(n.levels.begin(), n.levels.begin() + n.depth);
    for (stride_level& l : levels) l.file_step %= period_;

    // A level that leaves out no stripe joins the run, whatever its place among the levels, as long
    // as the run it repeats is one region: so try again after each success.
    for (bool folded = true; folded;) {
      folded = false;
      for (auto l = levels.begin(); l != levels.end(); ++l) {
        const std::uint64_t steps = l->count - 1;
        const std::uint64_t ahead = l->file_step, back = period_ - l->file_step;
        const std::uint64_t step = std::min(ahead, back);
        if (step > std::max(sf_, std::min(run, period_))) continue;
        if (step != 0 && steps > period_ / step) return all();
        if (back < ahead) offset = (offset + period_ - steps * step % period_) % period_;
        run += steps * step;
        levels.erase(l);
        folded = true;
        break;
      }
    }
    if (run >= period_) return all();
    for (stride_level& l : levels) l.count = std::min(l.count, period_ / std::gcd(l.file_step, period_));
    walk(levels, 0, offset, run);
  }

  std::vector<bool> result() && { return std::move(touched_); }

 private:
  void all() {
    touched_.assign(nn_, true);
    missing_ = 0;
  }

  void walk(const std::vector<stride_level>& levels, std::size_t depth, std::uint64_t offset, std::uint64_t run) {
    if (depth == levels.size()) return mark(offset % period_, run);
    for (std::uint64_t i = 0; i < levels[depth].count && missing_ != 0; ++i) {
      walk(levels, depth + 1, offset, run);
      offset = (offset + levels[depth].file_step) % period_;
    }
  }

  void mark(std::uint64_t offset, std::uint64_t run) {
    for (std::uint64_t k = offset / sf_; k <= (offset + run - 1) / sf_; ++k)
      if (const auto stripe_index = static_cast<std::size_t>(k % nn_); !touched_[stripe_index]) {
        touched_[stripe_index] = true;
        --missing_;
      }
  }

  std::uint64_t sf_, nn_, period_;
  std::vector<bool> touched_;
  std::uint64_t missing_;
};

}  // namespace

std::vector<bool> touched_stripe_indexes(const request& r, const striping& s) {
  search found(s);
  for (const nested_request& n : r.entries())
    if (n.bytes() != 0) found.add(n);
  return std::move(found).result();
}

}  // namespace ooc::storage
