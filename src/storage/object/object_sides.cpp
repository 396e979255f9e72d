#include "storage/object/object_sides.hpp"

#include <cerrno>

#include "storage/object/stripe_object.hpp"

namespace ooc::storage {
namespace {

int look_at_marks(const stripe_object& s, std::uint64_t region, bool& written) {
  bool second = false;
  int error = s.sums().is_touched(2 * region, written);
  if (error == 0) error = s.sums().is_touched(2 * region + 1, second);
  written |= second;
  return error;
}

/// Of regions that a stripe object with so many places has; the others have no marks.
side_file::look_at_region marks_of(const stripe_object& s, std::uint64_t places) {
  const std::uint64_t end = checksum_file::regions_for(places);
  return [&s, end](std::uint64_t region, bool& written) {
    written = false;
    return 2 * region < end ? look_at_marks(s, region, written) : 0;
  };
}

}  // namespace

bool object_sides::is_behind(const checksum_header& h) noexcept {
  return (h.flags & checksum_header::roll_back_due) != 0 || (h.unsynced != boot_id{} && h.unsynced != this_boot());
}

int object_sides::look_at_present(const stripe_object& s, std::uint64_t region, side_bits& bits, bool& there) const {
  if (const int e = file_.read_present(region, bits, there)) return e;
  if (there) return 0;
  bool written = false;
  const int e = look_at_marks(s, region, written);
  return e == 0 && written ? EBADMSG : e;
}

int object_sides::read_present(const stripe_object& s, std::uint64_t region, side_bits& bits) const {
  bool there = false;
  const int error = look_at_present(s, region, bits, there);
  if (error != EBADMSG) return error;
  const lock_guard lock(mutex_);
  return look_at_present(s, region, bits, there);
}

int object_sides::begin_present(const stripe_object& s, std::uint64_t region, side_bits& bits) {
  const lock_guard lock(mutex_);
  bool there = false;
  const int error = look_at_present(s, region, bits, there);
  return error != 0 || there ? error : file_.write_present(region, bits);
}

int object_sides::begin_group(const stripe_object& s, std::uint64_t group) {
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  const auto look = marks_of(s, h.chunks);
  const lock_guard lock(mutex_);
  side_file::group_bits bits;
  bool there = false;
  if (const int e = file_.read_committed(group, h.commit, bits, there); e != 0 || there) return e;
  for (std::uint64_t i = 0; i < side_file::group_regions; ++i) {
    const std::uint64_t region = group * side_file::group_regions + i;
    side_bits present;
    bool written = false;
    if (const int e = file_.read_present(region, present, there)) return e;
    if (const int e = look(region, written)) return e;
    if (!there && !written) continue;
    // Another process may have begun it since.
    const int e = file_.read_committed(group, h.commit, bits, there);
    return e == 0 && !there ? EBADMSG : e;
  }
  return file_.begin_group(group);
}

int object_sides::change_present(const stripe_object& s, std::uint64_t region,
                                 const std::function<void(side_bits&)>& change) {
  const lock_guard lock(mutex_);
  side_bits bits;
  bool there = false;
  if (const int e = look_at_present(s, region, bits, there)) return e;
  change(bits);
  return file_.write_present(region, bits);
}

int object_sides::prepare(stripe_object& s, std::uint64_t commit) {
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  if (h.commit > commit) return ESTALE;
  bool changed = false;
  // Also where all has been synced since: pages of bits are written now.
  const auto begin = [&] {
    changed = true;
    checksum_header marked;
    return s.mark_unsynced(marked);
  };
  if (const int e = file_.prepare(commit, marks_of(s, h.chunks), begin)) return e;
  return changed || !h.is_durable() ? s.settle_as_durable() : 0;
}

int object_sides::roll_back(stripe_object& s, std::uint64_t commit,
                            const std::function<void(std::uint64_t region)>& add) {
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  if (h.commit > commit) return ESTALE;
  // A loss of power in the middle is noticed, and makes it due again.
  const auto begin = [&] {
    checksum_header marked;
    return s.mark_unsynced(marked);
  };
  if (const int e = file_.roll_back(commit, marks_of(s, h.chunks), begin, add)) return e;
  if (const int e = s.make_durable(file_.fd())) return e;
  if (!is_behind(h) && h.commit == commit) return 0;
  const int error = s.change_header([&](checksum_header& now) {
    now.flags &= ~checksum_header::roll_back_due;
    now.commit = commit;
  });
  if (error == 0) may_be_due_ = false;
  return error;
}

bool object_sides::roll_back_due(const stripe_object& s) const {
  if (!may_be_due_) return false;
  checksum_header h;
  if (s.read_header(h) != 0 || is_behind(h)) return true;
  may_be_due_ = false;
  return false;
}

int object_sides::mend(const stripe_object& s, std::uint64_t places) {
  may_be_due_ = true;
  return file_.mend(places, marks_of(s, places));
}

}  // namespace ooc::storage
