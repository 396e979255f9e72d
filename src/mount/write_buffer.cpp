#include "mount/write_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "storage/layout/folded_request.hpp"

namespace ooc::mount {

page_memory::page_memory(std::size_t n, bool zeros) : bytes(n) {
  const std::size_t whole = (std::max<std::size_t>(n, 1) + 4095) / 4096 * 4096;
  data.reset(static_cast<std::byte*>(std::aligned_alloc(4096, whole)));
  if (!data) throw std::bad_alloc();
  if (zeros) std::memset(data.get(), 0, whole);
}

bool write_buffer::overlaps(std::uint64_t begin, std::uint64_t end) const {
  const auto after = runs_.lower_bound(end);
  if (begin >= end || after == runs_.begin()) return false;
  const auto& [at, last] = *std::prev(after);
  return at + last.bytes > begin;
}

std::uint64_t write_buffer::file_end() const {
  return runs_.empty() ? 0 : runs_.rbegin()->first + runs_.rbegin()->second.bytes;
}

std::size_t write_buffer::put(std::uint64_t at, std::span<const std::byte> bytes) {
  if (!memory_.data) memory_ = page_memory(most_bytes, false);
  const auto next = runs_.upper_bound(at);
  const auto before = next == runs_.begin() ? runs_.end() : std::prev(next);
  const std::uint64_t before_end = before == runs_.end() ? 0 : before->first + before->second.bytes;
  std::size_t n = bytes.size();
  if (before != runs_.end() && at < before_end) {
    n = std::min<std::uint64_t>(n, before_end - at);
    std::memcpy(memory_.data.get() + before->second.memory + (at - before->first), bytes.data(), n);
    return n;
  }
  if (next != runs_.end()) n = std::min<std::uint64_t>(n, next->first - at);
  n = std::min(n, most_bytes - used_);
  if (n == 0) return 0;
  if (before != runs_.end() && at == before_end && before->second.memory + before->second.bytes == used_) {
    before->second.bytes += n;
  } else {
    if (runs_.size() == most_runs) return 0;
    runs_.emplace_hint(next, at, run{used_, n});
  }
  std::memcpy(memory_.data.get() + used_, bytes.data(), n);
  used_ += n;
  return n;
}

request write_buffer::wanted() const {
  std::vector<nested_request> pieces;
  pieces.reserve(runs_.size());
  for (const auto& [at, r] : runs_) pieces.push_back({.file_offset = at, .memory_offset = r.memory, .run = r.bytes});
  return storage::folded(std::move(pieces));
}

page_memory write_buffer::release() noexcept {
  runs_.clear();
  used_ = 0;
  return std::exchange(memory_, {});
}

}  // namespace ooc::mount
