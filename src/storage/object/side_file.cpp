#include "storage/object/side_file.hpp"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>

#include "storage/base/whole_transfer.hpp"
#include "storage/object/object_files.hpp"

namespace ooc::storage {
namespace {

constexpr std::uint64_t group_page = chunk_size;
constexpr unsigned none = 2;

std::uint64_t group_offset(std::uint64_t group) noexcept { return group * 3 * group_page; }

std::uint64_t copy_offset(std::uint64_t group, unsigned which) noexcept {
  return group_offset(group) + (1 + which) * group_page;
}

std::uint64_t record_offset(std::uint64_t region, std::size_t record) noexcept {
  return group_offset(region / side_file::group_regions) + region % side_file::group_regions * record;
}

std::uint64_t groups_for(std::uint64_t places) noexcept {
  constexpr std::uint64_t places_of_group = 2 * side_file::group_regions * checksum_file::region_chunks;
  return places / places_of_group + (places % places_of_group != 0);
}

template <class T>
bool all_zeros(const T& t) noexcept {
  const auto* p = reinterpret_cast<const std::uint8_t*>(&t);
  return std::all_of(p, p + sizeof t, [](std::uint8_t b) { return b == 0; });
}

}  // namespace

// --- present bits

std::uint32_t side_file::check_of(std::uint64_t region, const side_bits& bits) const noexcept {
  const std::uint32_t c = crc32c(bits.data(), bits.size()) ^ seeds_.of_sides(3 * region);
  return c == 0 ? 1 : c;
}

int side_file::check(std::uint64_t region, const present_record& r, bool& there) const noexcept {
  there = !all_zeros(r);
  return !there || r.check == check_of(region, r.bits) ? 0 : EBADMSG;
}

int side_file::read_present(std::uint64_t region, side_bits& bits, bool& there, int how) const noexcept {
  present_record r;
  const std::uint64_t at = record_offset(region, sizeof r);
  const iovec part{&r, sizeof r};
  if (how == 0) {
    if (const int e = read_whole(fd_.get(), &r, sizeof r, at)) return e;
  } else if (::preadv2(fd_.get(), &part, 1, static_cast<off_t>(at), how) != static_cast<ssize_t>(sizeof r)) {
    return EAGAIN;
  }
  bits = r.bits;
  return check(region, r, there);
}

int side_file::read_presents(std::uint64_t group, present_page& page) const noexcept {
  return read_whole(fd_.get(), page.data(), sizeof page, group_offset(group));
}

int side_file::write_present(std::uint64_t region, const side_bits& bits) const noexcept {
  const present_record r{bits, check_of(region, bits)};
  return write_whole(fd_.get(), &r, sizeof r, record_offset(region, sizeof r));
}

// --- committed bits

std::uint32_t side_file::check_of(std::uint64_t group, unsigned which, committed_page p) const noexcept {
  p.check = 0;
  return crc32c(&p, sizeof p) ^ seeds_.of_sides(3 * group + 1 + which);
}

int side_file::read_copies(std::uint64_t group, committed_copies& copies) const noexcept {
  return read_whole(fd_.get(), copies.data(), sizeof copies, copy_offset(group, 0));
}

int side_file::write_copy(std::uint64_t group, unsigned which, committed_page p) const noexcept {
  p.check = check_of(group, which, p);
  return write_whole(fd_.get(), &p, sizeof p, copy_offset(group, which));
}

int side_file::counting(std::uint64_t group, const committed_copies& copies, std::uint64_t commit,
                        unsigned& which) const noexcept {
  which = none;
  const bool zeros[] = {all_zeros(copies[0]), all_zeros(copies[1])};
  if (zeros[0] && zeros[1]) return 0;
  for (const unsigned i : {0U, 1U})
    if (!zeros[i] && !intact(group, i, copies[i])) return EBADMSG;
  if (zeros[0] != zeros[1]) {
    // Somebody is beginning the group, or was killed when he did, before anything was written to it.
    present_page presents;
    if (const int e = read_presents(group, presents)) return e;
    return copies[zeros[0] ? 1 : 0].commit == 0 && all_zeros(presents) ? 0 : EBADMSG;
  }
  for (const unsigned i : {0U, 1U})
    if (copies[i].commit <= commit && (which == none || copies[i].commit > copies[which].commit)) which = i;
  return which == none ? ESTALE : 0;
}

int side_file::read_counting(std::uint64_t group, std::uint64_t commit, committed_copies& copies,
                             unsigned& which) const noexcept {
  // Somebody may be beginning the group at this moment: look again before calling it damaged.
  int error = EBADMSG;
  for (int attempt = 0; error == EBADMSG && attempt < 100; ++attempt) {
    if (attempt > 0) std::this_thread::yield();
    if (const int e = read_copies(group, copies)) return e;
    error = counting(group, copies, commit, which);
  }
  return error;
}

int side_file::read_committed(std::uint64_t group, std::uint64_t commit, group_bits& bits, bool& there) const noexcept {
  committed_copies copies;
  unsigned which = none;
  if (const int e = read_counting(group, commit, copies, which)) return e;
  there = which != none;
  bits = there ? copies[which].bits : group_bits{};
  return 0;
}

// Others that do the same write the same bytes, and a commit is kept out by the locks of the chunks.
int side_file::begin_group(std::uint64_t group) const noexcept {
  for (const unsigned which : {0U, 1U})
    if (const int e = write_copy(group, which, {})) return e;
  return 0;
}

// A chunk that is written changes sides, and only such.
std::uint16_t side_file::age_in(const committed_page& next, const committed_page& before, std::uint64_t i) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint16_t>::max();
  if (next.bits[i] != before.bits[i]) return 0;
  return static_cast<std::uint16_t>(std::min(most, before.ages[i] + std::min(most, next.commit - before.commit)));
}

// --- all groups

std::uint64_t side_file::bytes_for(std::uint64_t places) noexcept { return group_offset(groups_for(places)); }

int side_file::lengthen(std::uint64_t places, bool reserved) const {
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return errno;
  return extend_file(fd_.get(), static_cast<std::uint64_t>(st.st_size), bytes_for(places), reserved);
}

int side_file::groups(std::uint64_t& count) const noexcept {
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return errno;
  count = (static_cast<std::uint64_t>(st.st_size) + 3 * group_page - 1) / (3 * group_page);
  return 0;
}

int side_file::prepare(std::uint64_t commit, const look_at_region& look, const std::function<int()>& begin) const {
  std::uint64_t count = 0;
  bool begun = false;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    committed_copies copies;
    present_page presents;
    unsigned which = none;
    if (const int e = read_counting(g, commit, copies, which)) return e;
    if (const int e = read_presents(g, presents)) return e;
    committed_page next;
    next.commit = commit + 1;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      bool there = false, written = false;
      if (const int e = check(g * group_regions + i, presents[i], there)) return e;
      if (const int e = there ? 0 : look(g * group_regions + i, written)) return e;
      if (written || (there && which == none)) return EBADMSG;
      next.bits[i] = presents[i].bits;
    }
    if (which == none) continue;
    for (std::uint64_t i = 0; i < group_regions; ++i) next.ages[i] = age_in(next, copies[which], i);
    const committed_page& other = copies[1 - which];
    if (other.commit == next.commit && other.bits == next.bits) continue;  // as it was prepared before
    // The remains of an attempt that came to nothing must not count as this commit.
    if (next.bits == copies[which].bits && other.commit <= commit) continue;
    if (const int e = begun ? 0 : begin()) return e;
    begun = true;
    if (const int e = write_copy(g, 1 - which, next)) return e;
  }
  return 0;
}

int side_file::find_changes(std::uint64_t since, std::uint64_t commit,
                            const std::function<void(std::uint64_t region)>& add) const {
  std::uint64_t count = 0;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    committed_copies copies;
    unsigned which = none;
    if (const int e = read_counting(g, commit, copies, which)) return e;
    if (which == none) continue;
    const committed_page& p = copies[which];
    for (std::uint64_t i = 0; i < group_regions; ++i)
      if (p.commit > since && p.ages[i] < p.commit - since) add(g * group_regions + i);
  }
  return 0;
}

int side_file::roll_back(std::uint64_t commit, const look_at_region& look, const std::function<int()>& begin,
                         const std::function<void(std::uint64_t region)>& add) const {
  std::uint64_t count = 0;
  bool begun = false;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    group_bits bits;
    present_page presents;
    bool committed = false;
    if (const int e = read_committed(g, commit, bits, committed)) return e;
    if (const int e = read_presents(g, presents)) return e;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      const std::uint64_t region = g * group_regions + i;
      bool there = false, written = false;
      const bool damaged = check(region, presents[i], there) != 0;
      if (const int e = there ? 0 : look(region, written)) return e;
      if (written || (there && !committed)) return EBADMSG;
      if (!damaged && presents[i].bits == bits[i]) continue;  // also where nothing was written
      if (const int e = begun ? 0 : begin()) return e;
      begun = true;
      if (const int e = write_present(region, bits[i])) return e;
      add(region);
    }
  }
  return 0;
}

int side_file::mend(std::uint64_t places, const look_at_region& look) const {
  std::uint64_t count = 0;
  if (const int e = groups(count)) return e;
  count = std::max(count, groups_for(places));
  for (std::uint64_t g = 0; g < count; ++g) {
    present_page presents;
    if (const int e = read_presents(g, presents)) return e;
    bool in_use = false;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      const std::uint64_t region = g * group_regions + i;
      bool there = false, written = false;
      const bool damaged = check(region, presents[i], there) != 0;
      if (const int e = look(region, written)) return e;
      in_use |= there || written;
      // roll_back() says which; until then nobody reads.
      if (damaged || (written && !there))
        if (const int e = write_present(region, {})) return e;
    }
    if (const int e = mend_copies(g, in_use)) return e;
  }
  return ::fdatasync(fd_.get()) == 0 ? 0 : errno;
}

// Both are durable when a commit is decided, so a group with a copy of zeros has none.
int side_file::mend_copies(std::uint64_t group, bool in_use) const {
  committed_copies copies;
  if (const int e = read_copies(group, copies)) return e;
  const bool zeros[] = {all_zeros(copies[0]), all_zeros(copies[1])};
  const bool good[] = {intact(group, 0, copies[0]), intact(group, 1, copies[1])};
  if (zeros[0] && zeros[1] && !in_use) return 0;
  if (zeros[0] || zeros[1]) return begin_group(group);
  if (good[0] == good[1]) return 0;  // both damaged: read_committed() says so
  return write_copy(group, good[0] ? 1 : 0, copies[good[0] ? 0 : 1]);
}

}  // namespace ooc::storage
