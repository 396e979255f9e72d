#include "storage/object/checksum_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "storage/base/whole_transfer.hpp"

namespace ooc::storage {
namespace {

boot_id read_boot_id() {
  boot_id id;
  id.fill(0xff);
  file_descriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  if (!fd || ::read(fd.get(), text, sizeof text - 1) < 36) return id;
  boot_id parsed{};
  unsigned digits = 0;
  for (const char* c = text; *c != '\0' && digits < 32; ++c) {
    if (*c == '-') continue;
    const int v = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
    if (v < 0) return id;
    parsed[digits / 2] = static_cast<std::uint8_t>(parsed[digits / 2] << 4 | v);
    ++digits;
  }
  return digits == 32 ? parsed : id;
}

}  // namespace

const boot_id& this_boot() {
  static const boot_id id = read_boot_id();
  return id;
}

namespace {

// A group is a page of marks and the entries of their regions.  The first page begins with the
// header, which takes the room of 64 marks.
constexpr std::uint64_t page = 4096;
constexpr std::uint64_t entries_of_region = checksum_file::region_chunks * sizeof(checksum_entry);
constexpr std::uint64_t marks_of_page = page / 8;
constexpr std::uint64_t first_marks = (page - sizeof(checksum_header)) / 8;
constexpr std::uint64_t first_group = page + first_marks * entries_of_region;
constexpr std::uint64_t later_group = page + marks_of_page * entries_of_region;
constexpr std::uint32_t touched = 0x80000000U;

bool zeros(checksum_entry e) noexcept { return e == checksum_entry{}; }

}  // namespace

std::uint64_t checksum_file::entry_offset(std::uint64_t chunk) noexcept {
  constexpr std::uint64_t in_first = first_marks * region_chunks;
  constexpr std::uint64_t in_later = marks_of_page * region_chunks;
  if (chunk < in_first) return page + chunk * sizeof(checksum_entry);
  chunk -= in_first;
  return first_group + chunk / in_later * later_group + page + chunk % in_later * sizeof(checksum_entry);
}

std::uint64_t checksum_file::mark_offset(std::uint64_t region) noexcept {
  if (region < first_marks) return sizeof(checksum_header) + region * sizeof(mark);
  region -= first_marks;
  return first_group + region / marks_of_page * later_group + region % marks_of_page * sizeof(mark);
}

std::uint64_t checksum_file::together(std::uint64_t chunk, std::uint64_t count) noexcept {
  constexpr std::uint64_t in_first = first_marks * region_chunks;
  constexpr std::uint64_t in_later = marks_of_page * region_chunks;
  const std::uint64_t left = chunk < in_first ? in_first - chunk : in_later - (chunk - in_first) % in_later;
  return std::min(left, count);
}

int checksum_file::read(std::uint64_t chunk, std::span<checksum_entry> out, bool* untouched) const noexcept {
  for (std::size_t at = 0; at < out.size();) {
    const auto n = static_cast<std::size_t>(together(chunk + at, out.size() - at));
    if (const int e = read_whole(fd(), out.data() + at, n * sizeof(checksum_entry), entry_offset(chunk + at))) return e;
    at += n;
  }
  // Marks are looked at only where there are zeros: in regions never written to, or damaged.
  std::uint64_t known = ~std::uint64_t{0};
  bool fresh = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t c = chunk + i;
    const bool none = zeros(out[i]);
    out[i] = seeded(c, out[i]);
    if (!none) continue;
    if (c / region_chunks != known) {
      known = c / region_chunks;
      mark m;
      if (const int e = read_mark(known, m)) return e;
      fresh = intact(known, m) && m.value == 0;
      if (!fresh) {
        // Perhaps a writer was just touching the region: its entries came before the mark.
        checksum_entry again;
        if (const int e = read_whole(fd(), &again, sizeof again, entry_offset(c))) return e;
        out[i] = seeded(c, again);
        if (!zeros(again)) known = ~std::uint64_t{0};
        continue;
      }
    } else if (!fresh) {
      continue;
    }
    out[i] = {};
    if (untouched != nullptr) *untouched = true;
  }
  return 0;
}

int checksum_file::write(std::uint64_t chunk, std::span<const checksum_entry> entries) const {
  thread_local std::vector<checksum_entry> on_disk;
  on_disk.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) on_disk[i] = seeded(chunk + i, entries[i]);
  for (std::size_t at = 0; at < entries.size();) {
    const auto n = static_cast<std::size_t>(together(chunk + at, entries.size() - at));
    if (const int e = write_whole(fd(), on_disk.data() + at, n * sizeof(checksum_entry), entry_offset(chunk + at)))
      return e;
    at += n;
  }
  return 0;
}

int checksum_file::read_mark(std::uint64_t region, mark& m) const noexcept {
  static_assert(sizeof m == 8);
  return read_whole(fd(), &m, sizeof m, mark_offset(region));
}

int checksum_file::write_mark(std::uint64_t region, std::uint32_t value) const noexcept {
  const mark m{value, seeds_.of_mark(region, value)};
  return write_whole(fd(), &m, sizeof m, mark_offset(region));
}

int checksum_file::mark_touched(std::uint64_t region, std::uint64_t syncs) const noexcept {
  return write_mark(region, touched | static_cast<std::uint32_t>(syncs & ~touched));
}

int checksum_file::is_touched(std::uint64_t region, bool& touched) const noexcept {
  mark m;
  if (const int e = read_mark(region, m)) return e;
  touched = !intact(region, m) || m.value != 0;
  return 0;
}

int checksum_file::touch(std::uint64_t first, std::uint64_t count, std::uint64_t syncs, std::uint64_t chunks) const {
  for (std::uint64_t r = first / region_chunks; r <= (first + count - 1) / region_chunks; ++r) {
    mark m;
    if (const int e = read_mark(r, m)) return e;
    // A damaged mark says nothing: entries of zeros stay lost until their chunks are written whole.
    if (!intact(r, m) || m.value != 0) continue;
    if (const int e = replace_zeros(r, chunks)) return e;
    if (const int e = mark_touched(r, syncs)) return e;
  }
  return 0;
}

// Only the zeros: others of this process may be writing entries of the region that are there.
int checksum_file::replace_zeros(std::uint64_t region, std::uint64_t chunks, std::uint64_t from) const {
  const std::uint64_t first = std::max(region * region_chunks, from);
  if (first >= chunks) return 0;
  std::array<checksum_entry, region_chunks> e;
  const auto n = static_cast<std::size_t>(std::min((region + 1) * region_chunks, chunks) - first);
  if (const int error = read_whole(fd(), e.data(), n * sizeof(checksum_entry), entry_offset(first))) return error;
  for (std::size_t i = 0; i < n;) {
    std::size_t end = i;
    while (end < n && zeros(e[end])) ++end;
    if (end > i)
      if (const int error = clear(first + i, first + end)) return error;
    i = end + 1;
  }
  return 0;
}

int checksum_file::clear(std::uint64_t first, std::uint64_t end) const {
  const std::vector<checksum_entry> none(end - first);
  return write(first, none);
}

int checksum_file::mark_untouched(std::uint64_t first_region, std::uint64_t end_region) const {
  std::vector<mark> run;
  for (std::uint64_t r = first_region; r < end_region;) {
    const std::uint64_t at = mark_offset(r);
    run.clear();
    for (; r < end_region && mark_offset(r) == at + run.size() * sizeof(mark); ++r)
      run.push_back({0, seeds_.of_mark(r, 0)});
    if (const int e = write_whole(fd(), run.data(), run.size() * sizeof(mark), at)) return e;
  }
  return 0;
}

int checksum_file::mend_touched_after(std::uint64_t syncs, std::uint64_t chunks) const {
  const std::uint32_t since = touched | static_cast<std::uint32_t>(syncs & ~touched);
  for (std::uint64_t r = 0; r < regions_for(chunks); ++r) {
    mark m;
    if (const int e = read_mark(r, m)) return e;
    if (!intact(r, m) || m.value != since) continue;
    if (const int e = replace_zeros(r, chunks)) return e;
  }
  return 0;
}

int checksum_file::mend_new(std::uint64_t first, std::uint64_t chunks, std::uint64_t syncs) const {
  for (std::uint64_t r = first / region_chunks; r < regions_for(chunks); ++r) {
    mark m;
    if (const int e = read_mark(r, m)) return e;
    const bool intact_mark = intact(r, m);
    if (intact_mark && m.value == 0) continue;
    if (const int e = replace_zeros(r, chunks, first)) return e;
    // A region that was there before keeps its mark: what is wrong with it is no matter of this.
    if (!intact_mark && r * region_chunks >= first)
      if (const int e = mark_touched(r, syncs)) return e;
  }
  return 0;
}

bool checksum_file::has_header() const noexcept {
  std::array<std::byte, sizeof(checksum_header)> bytes{};
  return read_whole(fd(), bytes.data(), bytes.size(), 0) == 0 &&
         std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{}; });
}

int checksum_file::read_header(checksum_header& h) const noexcept {
  if (const int e = read_whole(fd(), &h, sizeof h, 0)) return e;
  const checksum_header expected;
  const std::uint32_t crc = h.crc;
  h.crc = 0;
  const bool intact = crc32c(&h, sizeof h) == crc;
  h.crc = crc;
  return intact && h.magic == expected.magic && h.version == expected.version && h.chunk_bytes == expected.chunk_bytes
             ? 0
             : EINVAL;
}

int checksum_file::write_header(checksum_header h) const noexcept {
  h.crc = 0;
  h.crc = crc32c(&h, sizeof h);
  return write_whole(fd(), &h, sizeof h, 0);
}

int checksum_file::make_durable() const noexcept { return ::fdatasync(fd()) == 0 ? 0 : errno; }

}  // namespace ooc::storage
