#include "storage/object/io_worker.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace ooc::storage {

io_worker::io_worker(std::uint64_t staging, bool io_uring, node_counters& c)
    : counters(c),
      engine_(make_transfer_engine(io_uring)),
      copier_(make_plain_engine()),
      buffer_(static_cast<std::byte*>(::operator new (staging, std::align_val_t{4096}))),
      bounce_chunks_((staging - sink_bytes) / chunk_size - 1) {}

void io_worker::run(stripe_object& s, direction d) {
  if (plan.extents.empty()) return;
  // In this order: another thread may be giving direct transfers up.
  const bool direct = s.direct();
  const int fd = s.data();
  // A ring hands a copy to the page cache to a thread of the kernel; this one has just checked the
  // bytes, and has them in its processor's cache.
  const bool copying = d == direction::write && !direct;
  (copying ? copier_ : engine_)->run(fd, d, plan);
  if (direct) {
    bool refused = false;
    for (const transfer& t : plan.extents) refused |= t.error == EINVAL;
    if (refused && s.give_up_direct() == 0) {
      for (transfer& t : plan.extents)
        if (t.error == EINVAL) t.error = 0;
      engine_->run(s.data(), d, plan);
    }
  }
  std::uint64_t bytes = 0;
  for (const transfer& t : plan.extents) bytes += t.done;
  const bool reading = d == direction::read;
  counters.add(reading ? &io_stats::device_reads : &io_stats::device_writes, plan.extents.size());
  counters.add(reading ? &io_stats::device_bytes_read : &io_stats::device_bytes_written, bytes);
}

object_error io_worker::first_error(const char* step, const chunk_places& places) const noexcept {
  for (const transfer& t : plan.extents)
    if (t.error != 0) {
      const std::uint64_t at = t.offset + t.done;
      return {t.error, verdict::good, places.chunk(at / chunk_size) * chunk_size + at % chunk_size, step};
    }
  return {};
}

void io_worker::sort_slots() {
  std::sort(slots.begin(), slots.end(), [](const chunk_slot& a, const chunk_slot& b) { return a.place < b.place; });
}

int io_worker::load_sums(const stripe_object& s, bool& untouched) {
  // Entries that lie near each other come with one read, those between them too.
  constexpr std::uint64_t near = 512;
  sums.clear();
  for (std::size_t i = 0; i < slots.size();) {
    const std::uint64_t first = slots[i].place;
    std::uint64_t end = first + slots[i].count;
    std::size_t j = i + 1;
    for (; j < slots.size(); ++j) {
      if (slots[j].place < first || slots[j].place > end + near) break;
      end = std::max(end, slots[j].place + slots[j].count);
    }
    row_.resize(end - first);
    if (const int e = s.sums().read(first, row_, &untouched)) return e;
    for (; i < j; ++i) {
      const auto at = row_.begin() + static_cast<std::ptrdiff_t>(slots[i].place - first);
      sums.insert(sums.end(), at, at + slots[i].count);
    }
  }
  return 0;
}

}  // namespace ooc::storage
