// is_sorted() and lower_bound(): an array read in pieces, several at a time.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oocarray/detail/sort_engine.hpp"
#include "oocarray/error.hpp"
#include "runtime/algorithm/algorithm_call.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/algorithm/lent_memory.hpp"
#include "runtime/algorithm/thread_team.hpp"
#include "runtime/array/direct_array.hpp"
#include "runtime/ranks/shared_array.hpp"
#include "storage/base/packed.hpp"

namespace ooc::detail {
namespace {

constexpr std::uint64_t good_scan_bytes = 4 << 20;
constexpr std::uint64_t leaf_bytes = 64 << 10;
constexpr std::size_t reads_in_flight = 16;

/// Whether the ranks of a group make the call together, or each for itself.
enum class ranks_call : std::uint8_t { together, alone };

/// The steps that is_sorted() and lower_bound() have in common before they read.
class sorted_array {
 public:
  sorted_array(const array_core& a, std::size_t element_size, const char* what, ranks_call how, const sort_options& o)
      // The call counts and refuses; it changes nothing.
      : call_(std::string(what) + " of '" + a.facts().path + "'", const_cast<array_core&>(a), {},
              {.threads = o.threads, .mark = false, .progress = o.progress}),
        size_(element_size) {
    if (o.plan) call_.refuse("it reads the array once at most, and has no report: leave options.plan out");
    const std::size_t n = a.facts().extents.size();
    const auto look = [&] {
      if (n > 1 && !o.flat)
        call_.refuse("the array has " + std::to_string(n) +
                     " dimensions: options.flat takes its elements as one sequence in row-major order");
      file_.emplace(direct_.emplace(a.shared().local(), access_mode::read, what), element_size);
    };
    if (how == ranks_call::together)
      call_.together(look);  // what any rank has modified is in the store before one of them reads
    else
      look();
    elements_ = 1;
    for (const std::uint64_t e : a.facts().extents) elements_ *= e;
    spare_ = a.shared().pager().spare();
    if (o.memory != 0) spare_ = std::min(spare_, o.memory);
  }

  algorithm_call& call() noexcept { return call_; }
  const element_file& file() const noexcept { return *file_; }
  std::uint64_t elements() const noexcept { return elements_; }

  /// Elements in each of so many buffers, at least `least` and as near to `wanted` bytes as memory allows.
  std::size_t elements_each(std::size_t buffers, std::uint64_t wanted, std::size_t least) const {
    const std::uint64_t n = std::min(wanted, spare_ / buffers) / size_;
    if (n < least && least * size_ * buffers > spare_)
      call_.refuse("it needs " + std::to_string(least * size_ * buffers) + " bytes of memory, and may take " +
                       std::to_string(spare_) + ": give the runtime " +
                       std::to_string(least * size_ * buffers - spare_) + " bytes more",
                   errc::budget_too_small);
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(std::max<std::uint64_t>(n, least), std::max<std::uint64_t>(elements_ + 1, least)));
  }

 private:
  algorithm_call call_;
  std::optional<direct_array> direct_;
  std::optional<element_file> file_;
  const std::size_t size_;
  std::uint64_t elements_ = 0;
  std::uint64_t spare_ = 0;
};

/// Keys [first, last) are to be found in elements [lower, upper], or at its end.
struct interval {
  std::uint64_t lower, upper;
  std::size_t first, last;
};

/// Reads element sequences for intervals, several at a time, and calls f(interval, elements).
template <class Range, class F>
void read_each(const std::vector<interval>& all, const element_file& file, std::byte* memory, std::size_t room,
               Range range, F f) {
  buffered_stream reads(reads_in_flight, reads_in_flight);
  reads.use(memory, room * file.element_size());
  for (std::size_t i = 0; i < all.size(); ++i)
    f(all[i], reads.read(i, all.size(), [&](std::uint64_t n, direct_transfer& t, std::byte* to) {
      const auto [first, count] = range(all[n]);
      if (count != 0) t.begin_read(file, first, count, to);
    }));
}

/// Elements [first, last), and the one after them.
bool part_is_sorted(sorted_array& s, pager& p, const sort_program& program, std::uint64_t first, std::uint64_t last) {
  if (first == last) return true;
  const std::size_t size = program.element_size();
  const std::uint64_t end = std::min(last + 1, s.elements());
  // Each thread looks at one buffer while the other is read.  A piece ends with the first element of the next.
  unsigned watchers = s.call().threads();
  while (watchers > 1 && s.elements_each(1, good_scan_bytes, 1) * size * 2 * watchers > p.spare()) --watchers;
  const std::size_t room = s.elements_each(2 * watchers, good_scan_bytes, 2);
  const std::size_t piece = room - 1;
  const std::uint64_t pieces = (last - first + piece - 1) / piece;
  const lent_memory memory(p, 2 * watchers * room * size, s.call().name());
  s.call().expect((last - first) * size);
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> sorted{true};
  thread_team team(watchers);
  team.run(watchers, [&](std::size_t r) {
    buffered_stream reads(2, 2);
    reads.use(memory.data() + 2 * r * room * size, room * size);
    const auto count_of = [&](std::uint64_t n) {
      return static_cast<std::size_t>(std::min<std::uint64_t>(room, end - first - n * piece));
    };
    std::uint64_t mine[2] = {};
    const auto begin = [&](std::uint64_t n, direct_transfer& t, std::byte* to) {
      const std::uint64_t taken = mine[n % 2] = next++;
      if (taken < pieces) t.begin_read(s.file(), first + taken * piece, count_of(taken), to);
    };
    for (std::uint64_t n = 0; sorted; ++n) {
      reads.begin_reads(n + 2, begin);
      if (mine[n % 2] >= pieces) break;
      const std::size_t count = count_of(mine[n % 2]);
      if (program.sorted_until(reads.arrived(n), count) != count) sorted = false;
      s.call().advance(std::min(count, piece) * size);
    }
  });
  return sorted;
}

}  // namespace

bool run_is_sorted(const array_core& a, const sort_program& program, const sort_options& options) {
  a.check_open();
  sorted_array s(a, program.element_size(), "is_sorted()", ranks_call::together, options);
  if (s.elements() == 0) return true;
  const auto rows = a.ranks().rows_of(s.call().rank());
  const std::uint64_t row = s.elements() / a.facts().extents[0];
  const auto told = s.call().together([&] {
    const bool sorted = part_is_sorted(s, a.shared().pager(), program, rows.first * row, rows.second * row);
    return storage::packer().number(sorted ? 1 : 0).take();
  });
  return std::all_of(told.begin(), told.end(), [](const auto& t) { return storage::unpacker(t).number() != 0; });
}

void run_search(const array_core& a, search_program& program, const sort_options& options) {
  a.check_open();
  if (program.keys() == 0) return;
  const std::size_t size = program.element_size();
  sorted_array s(a, size, "lower_bound()", ranks_call::alone, options);
  const std::size_t room = s.elements_each(reads_in_flight, leaf_bytes, 1);
  const lent_memory memory(a.shared().pager(), reads_in_flight * room * size, s.call().name());
  // At most: each level of halving an element for each key, then a read for each.
  std::uint64_t most = 0, intervals = 1;
  for (std::uint64_t n = s.elements(); n > room; n /= 2, intervals *= 2)
    most += std::min<std::uint64_t>(intervals, program.keys());
  most = (most + std::min<std::uint64_t>(program.keys() * room, s.elements())) * size;
  s.call().expect(most);
  std::uint64_t read = 0;
  const auto count = [&](std::uint64_t elements) {
    read += elements * size;
    s.call().advance(elements * size);
  };
  // Halves all intervals at once, level by level, until each is one read.
  std::vector<interval> wide{{0, s.elements(), 0, program.keys()}}, leaves;
  while (!wide.empty()) {
    std::vector<interval> halves;
    const auto keep = [&](const interval& i) {
      if (i.first == i.last) return;
      (i.upper - i.lower <= room ? leaves : halves).push_back(i);
    };
    if (wide.size() == 1 && wide[0].upper - wide[0].lower <= room) {
      leaves = std::move(wide);
      break;
    }
    const auto middle = [](const interval& i) { return i.lower + (i.upper - i.lower) / 2; };
    read_each(
        wide, s.file(), memory.data(), room,
        [&](const interval& i) {
          return std::pair{middle(i), std::uint64_t{1}};
        },
        [&](const interval& i, const std::byte* element) {
          count(1);
          const std::size_t cut = program.keys_after(i.first, i.last, element);
          keep({i.lower, middle(i), i.first, cut});
          keep({middle(i) + 1, i.upper, cut, i.last});
        });
    wide = std::move(halves);
  }
  std::sort(leaves.begin(), leaves.end(), [](const interval& x, const interval& y) { return x.lower < y.lower; });
  read_each(
      leaves, s.file(), memory.data(), room,
      [](const interval& i) {
        return std::pair{i.lower, i.upper - i.lower};
      },
      [&](const interval& i, const std::byte* elements) {
        count(i.upper - i.lower);
        for (std::size_t k = i.first; k < i.last; ++k)
          program.place(k, elements, static_cast<std::size_t>(i.upper - i.lower), i.lower);
      });
  s.call().advance(most - read);  // keys that lie near each other shared what was read
}

}  // namespace ooc::detail
