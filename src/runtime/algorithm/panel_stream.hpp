// Panels of a matrix in the order in which they are needed: while one is used, the next is read.
//
// On ranks that all need the same panels, each reads a share of the rows of every panel and passes it on to the
// others, so that each panel is read from the store once:
//
//     call.together([&] { stream.fetch(n, count); });   // the share of this rank is there
//     stream.pass_on(n, group, call.name(), owner);     // collective: now the whole panel is
//     stream.panel(n);
//
// Owner: the algorithm; the memory outlives it.  Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "oocarray/detail/multiply_engine.hpp"
#include "oocarray/process_group.hpp"
#include "runtime/algorithm/buffered_stream.hpp"
#include "runtime/array/direct_array.hpp"

namespace ooc::detail {

struct rectangle {
  std::array<std::size_t, 2> lower{}, upper{};
  std::size_t rows() const noexcept { return upper[0] - lower[0]; }
  std::size_t columns() const noexcept { return upper[1] - lower[1]; }
  std::size_t elements() const noexcept { return rows() * columns(); }
  box_view view() const noexcept { return {lower, upper}; }
  /// The rows that one of so many ranks reads.
  rectangle share(int rank, int ranks) const noexcept {
    const auto edge = [&](int r) {
      return lower[0] + rows() * static_cast<std::size_t>(r) / static_cast<std::size_t>(ranks);
    };
    return {{edge(rank), lower[1]}, {edge(rank + 1), upper[1]}};
  }
};

/// One of the ranks that share each panel.
struct panel_reader {
  int rank = 0;
  int ranks = 1;
};

/// Collective: to all ranks what each has in its own part of `parts`, which are by rank and of the same lengths on all.
/// `owner` keeps the memory.
inline void share_parts(process_group& group, const std::string& call, const std::vector<std::span<std::byte>>& parts,
                        const std::shared_ptr<const void>& owner) {
  constexpr std::size_t most = std::size_t{1} << 30;  // what a message carries is limited
  std::size_t longest = 0;
  for (const auto& p : parts) longest = std::max(longest, p.size());
  for (std::size_t at = 0; at < longest; at += most) {
    std::vector<std::span<std::byte>> in;
    for (const auto& p : parts)
      in.push_back(p.subspan(std::min(at, p.size()), std::min(most, p.size() - std::min(at, p.size()))));
    const std::vector<std::span<const std::byte>> out(parts.size(), in[static_cast<std::size_t>(group.rank())]);
    group.exchange(call, out, in, owner);
  }
}

class panel_stream {
 public:
  struct buffers {
    std::byte* memory = nullptr;
    std::size_t count = 2;
    std::size_t bytes = 0;  ///< of each
  };
  using place_of = std::function<rectangle(std::uint64_t)>;

  panel_stream(const direct_array& a, std::size_t element_size, place_of place, std::uint64_t panels, const buffers& b,
               panel_reader r = {})
      : array_(a),
        size_(element_size),
        place_(std::move(place)),
        panels_(panels),
        reader_(r),
        reads_(b.count, b.count) {
    reads_.use(b.memory, b.bytes);
  }

  /// Panel n is in memory, or the share of it that this rank reads; n is that of the last call or the next.  Bytes
  /// that come in are counted by `read`.
  template <class F>
  void fetch(std::uint64_t n, F read) {
    if (ready_ == n) return;
    reads_.read(n, panels_, [this](std::uint64_t panel, direct_transfer& t, std::byte* to) { begin(panel, t, to); });
    ready_ = n;
    read(share(n).elements() * size_);
  }
  matrix_part panel(std::uint64_t n) const {
    const rectangle r = place_(n);
    return {reads_.buffer(n), r.rows(), r.columns(), r.columns()};
  }
  /// Collective: all shares of panel n, which all ranks have fetched, to all ranks.  `owner` keeps the memory.
  void pass_on(std::uint64_t n, process_group& group, const std::string& call,
               const std::shared_ptr<const void>& owner) {
    if (passed_ == n) return;
    passed_ = n;
    if (reader_.ranks == 1) return;
    const rectangle all = place_(n);
    const std::size_t row = all.columns() * size_;
    std::vector<std::span<std::byte>> parts;
    for (int r = 0; r < reader_.ranks; ++r) {
      const rectangle part = all.share(r, reader_.ranks);
      parts.emplace_back(reads_.buffer(n) + (part.lower[0] - all.lower[0]) * row, part.rows() * row);
    }
    share_parts(group, call, parts, owner);
  }

 private:
  rectangle share(std::uint64_t n) const { return place_(n).share(reader_.rank, reader_.ranks); }
  void begin(std::uint64_t n, direct_transfer& t, std::byte* to) const {
    const rectangle mine = share(n);
    if (mine.elements() == 0) return;
    const std::size_t before = (mine.lower[0] - place_(n).lower[0]) * mine.columns() * size_;
    t.begin_read(array_.file(), array_.box(mine.view()), to + before);
  }

  const direct_array& array_;
  const std::size_t size_;
  const place_of place_;
  const std::uint64_t panels_;
  const panel_reader reader_;
  std::optional<std::uint64_t> ready_;   ///< panel in use
  std::optional<std::uint64_t> passed_;  ///< the last that all ranks have
  buffered_stream reads_;
};

}  // namespace ooc::detail
