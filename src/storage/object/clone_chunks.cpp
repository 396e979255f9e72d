#include "storage/object/clone_chunks.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace ooc::storage {

namespace {

bool was_written(const checksum_entry& e) noexcept { return e != checksum_entry{}; }

int share_blocks(int from, std::uint64_t from_chunk, int to, std::uint64_t to_chunk, std::uint64_t chunks) noexcept {
  const file_clone_range r{from, from_chunk * chunk_size, chunks * chunk_size, to_chunk * chunk_size};
  if (::ioctl(to, FICLONERANGE, &r) == 0) return 0;
  // What file systems say that share nothing, or blocks larger than a chunk.
  const bool cannot = errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV || errno == EINVAL || errno == ENOSYS;
  return cannot ? EOPNOTSUPP : errno;
}

int copy_blocks(io_worker& w, stripe_object& from, std::uint64_t from_chunk, stripe_object& to, std::uint64_t to_chunk,
                std::uint64_t chunks) {
  int failed = 0;
  for (std::uint64_t i = 0; failed == 0 && i < chunks;) {
    const std::uint64_t n = std::min<std::uint64_t>(w.bounce_chunks(), chunks - i);
    for (const direction d : {direction::read, direction::write}) {
      if (failed != 0) break;
      const std::uint64_t at = d == direction::read ? from_chunk : to_chunk;
      w.plan.add((at + i) * chunk_size, w.bounce_chunk(0), n * chunk_size);
      w.run(d == direction::read ? from : to, d);
      failed = w.first_error("copying", chunk_places{}).error;
      w.forget_batch();  // or who works here next has it run once more
    }
    i += n;
  }
  return failed;
}

}  // namespace

int clone_chunks(io_worker* copier, stripe_object& from, std::uint64_t place, stripe_object& to, std::uint64_t chunk,
                 std::uint64_t n, const checksum_header& h) {
  std::vector<checksum_entry> entries(n);
  if (const int e = from.sums().read(place, entries)) return e;
  const auto first = std::ranges::find_if(entries, was_written);
  if (first == entries.end()) return 0;
  const auto before = static_cast<std::uint64_t>(first - entries.begin());
  while (!was_written(entries.back())) entries.pop_back();
  for (std::uint64_t i = before; i < entries.size(); ++i)  // lost there, and so here
    if (const std::uint32_t lost = from.sums().seeds().of_chunk(place + i); entries[i] == checksum_entry{lost, lost})
      entries[i].current = entries[i].next = to.sums().seeds().of_chunk(chunk + i);
  const std::uint64_t count = entries.size() - before;
  int e = to.touch(chunk + before, count, h);
  if (e == 0) e = share_blocks(from.data(), place + before, to.data(), chunk + before, count);
  if (e == EOPNOTSUPP && copier != nullptr) e = copy_blocks(*copier, from, place + before, to, chunk + before, count);
  return e != 0 ? e : to.sums().write(chunk + before, std::span(entries).subspan(before));
}

}  // namespace ooc::storage
