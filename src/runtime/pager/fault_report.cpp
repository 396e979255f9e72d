#include "runtime/pager/fault_report.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string_view>

namespace ooc::detail {
namespace {

/// One line, cut where it is too long.
class line {
 public:
  line& operator<<(std::string_view s) noexcept {
    const std::size_t n = std::min(s.size(), text_.size() - 1 - used_);
    std::memcpy(text_.data() + used_, s.data(), n);
    used_ += n;
    return *this;
  }
  line& operator<<(std::uint64_t n) noexcept {
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
    return *this << std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data()));
  }
  void write() noexcept {
    text_[used_++] = '\n';
    if (::write(2, text_.data(), used_) < 0) { /* nobody left to tell */
    }
  }

 private:
  std::array<char, 1024> text_;
  std::size_t used_ = 0;
};

/// "element (3, 4)", or "byte 17 of block 2" where the source has no elements.
void name_place(line& l, const segment_state& s, std::uint64_t offset) noexcept {
  const std::uint64_t block = offset / s.block_bytes(), in = offset % s.block_bytes();
  block_source::place_name at;
  const std::size_t rank = s.source->element_at(block, in, at);
  if (rank == 0) {
    l << "byte " << in << " of block " << block;
    return;
  }
  l << "element (";
  for (std::size_t k = 0; k < rank; ++k) l << (k ? ", " : "") << at[k];
  l << ")";
}

std::string_view done_to_it(touch t) noexcept {
  return t == touch::write ? " was written" : t == touch::read ? " was read" : " was touched";
}

}  // namespace

void report_bad_touch(const segment_state& s, std::int64_t offset, touch t, bad_touch why) noexcept {
  line l;
  l << "oocarray: array '" << s.options.name << "': ";
  const auto place = static_cast<std::uint64_t>(offset);
  if (offset < 0)
    l << "byte -" << -place;
  else
    name_place(l, s, place);
  l << done_to_it(t);
  switch (why) {
    case bad_touch::in_forked_child: l << " in a forked child; only the parent may use the array"; break;
    case bad_touch::closed:
      l << (s.use.load(std::memory_order_relaxed) == segment_use::closed_with_runtime
                ? " after the end of its runtime, which closed it; let the runtime live longer"
                : " after it had been closed");
      break;
    case bad_touch::out_of_range:
      l << (offset < 0 ? ", before its first element" : ", past its last")
        << ": an index is out of range; at(), or a build without NDEBUG, tells which";
      break;
    case bad_touch::read_only:
      l << ", but it is open for reading only; open it for writing too (ooc::open; in Python mode='r+')";
      break;
    case bad_touch::outside_part:
      l << ", in block " << place / s.block_bytes() << ", which is outside this rank's part, blocks "
        << s.options.part.may_write.first << " to " << s.options.part.may_write.last << " (owner_computes)";
      break;
  }
  l.write();
}

void report_displaced_handler(const segment_state& s) noexcept {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  line l;
  l << "oocarray: array '" << s.options.name
    << "': what was just reported was no crash, but a touch of elements that were not in memory, "
       "and the program goes "
       "on; a handler of SIGSEGV that was installed later saw it first: install it before the "
       "runtime is made, or call "
       "runtime::reclaim_faults()";
  l.write();
}

}  // namespace ooc::detail
