#include "storage/object/side_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "storage/base/whole_transfer.hpp"

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

int side_file::read_present(std::uint64_t region, side_bits& bits, bool& there) const noexcept {
  present_record r;
  if (const int e = read_whole(fd_.get(), &r, sizeof r, record_offset(region, sizeof r))) return e;
  there = !all_zeros(r);
  bits = r.bits;
  return !there || r.check == check_of(region, bits) ? 0 : EBADMSG;
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

int side_file::read_group(std::uint64_t group, std::array<committed_page, 2>& copies) const noexcept {
  return read_whole(fd_.get(), copies.data(), sizeof copies, copy_offset(group, 0));
}

int side_file::write_copy(std::uint64_t group, unsigned which, committed_page p) const noexcept {
  p.check = check_of(group, which, p);
  return write_whole(fd_.get(), &p, sizeof p, copy_offset(group, which));
}

int side_file::counting(std::uint64_t group, const std::array<committed_page, 2>& copies, std::uint64_t commit,
                        unsigned& which) const noexcept {
  which = none;
  if (all_zeros(copies)) return 0;
  for (const unsigned i : {0U, 1U}) {
    if (!intact(group, i, copies[i])) return EBADMSG;
    if (copies[i].commit <= commit && (which == none || copies[i].commit > copies[which].commit)) which = i;
  }
  return which == none ? ESTALE : 0;
}

int side_file::read_committed(std::uint64_t group, std::uint64_t commit, group_bits& bits, bool& there) const noexcept {
  std::array<committed_page, 2> copies;
  unsigned which = none;
  if (const int e = read_group(group, copies)) return e;
  if (const int e = counting(group, copies, commit, which)) return e;
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

int side_file::groups(std::uint64_t& count) const noexcept {
  struct stat st {};
  if (::fstat(fd_.get(), &st) != 0) return errno;
  count = (static_cast<std::uint64_t>(st.st_size) + 3 * group_page - 1) / (3 * group_page);
  return 0;
}

int side_file::prepare(std::uint64_t commit) const {
  std::uint64_t count = 0;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    std::array<committed_page, 2> copies;
    unsigned which = none;
    if (const int e = read_group(g, copies)) return e;
    if (const int e = counting(g, copies, commit, which)) return e;
    if (which == none) continue;
    committed_page next;
    next.commit = commit + 1;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      bool there = false;
      if (const int e = read_present(g * group_regions + i, next.bits[i], there)) return e;
    }
    // What an attempt has left that came to nothing must not count as this commit.
    const unsigned other = 1 - which;
    if (next.bits == copies[which].bits && copies[other].commit <= commit) continue;
    if (const int e = write_copy(g, other, next)) return e;
  }
  return 0;
}

int side_file::roll_back(std::uint64_t commit) const {
  std::uint64_t count = 0;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    group_bits bits;
    bool there = false;
    if (const int e = read_committed(g, commit, bits, there)) return e;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      const std::uint64_t region = g * group_regions + i;
      side_bits present;
      const int e = read_present(region, present, there);
      if (e != 0 && e != EBADMSG) return e;
      if (e == 0 && (!there || present == bits[i])) continue;
      if (const int failed = write_present(region, bits[i])) return failed;
    }
  }
  return make_durable();
}

int side_file::mend(const std::function<int(std::uint64_t region, bool& written)>& look) const {
  std::uint64_t count = 0;
  if (const int e = groups(count)) return e;
  for (std::uint64_t g = 0; g < count; ++g) {
    bool in_use = false;
    for (std::uint64_t i = 0; i < group_regions; ++i) {
      const std::uint64_t region = g * group_regions + i;
      side_bits bits;
      bool there = false, written = false;
      const int e = read_present(region, bits, there);
      if (e != 0 && e != EBADMSG) return e;
      if (const int failed = look(region, written)) return failed;
      in_use |= there || written;
      // roll_back() says which; until then nobody reads.
      if (e == EBADMSG || (written && !there))
        if (const int failed = write_present(region, {})) return failed;
    }
    if (const int e = in_use ? mend_copies(g) : 0) return e;
  }
  return make_durable();
}

int side_file::mend_copies(std::uint64_t group) const {
  std::array<committed_page, 2> copies;
  if (const int e = read_group(group, copies)) return e;
  if (all_zeros(copies)) return begin_group(group);
  const bool good[] = {intact(group, 0, copies[0]), intact(group, 1, copies[1])};
  if (good[0] == good[1]) return 0;  // both damaged: read_committed() says so
  return write_copy(group, good[0] ? 1 : 0, copies[good[0] ? 0 : 1]);
}

int side_file::make_durable() const noexcept { return ::fdatasync(fd_.get()) == 0 ? 0 : errno; }

}  // namespace ooc::storage
