#include "storage/object/object_sides.hpp"

#include <cerrno>

#include "storage/object/stripe_object.hpp"

namespace ooc::storage {
namespace {

int look_at_marks(const checksum_file& sums, std::uint64_t region, bool& written) {
  bool second = false;
  int error = sums.is_touched(2 * region, written);
  if (error == 0) error = sums.is_touched(2 * region + 1, second);
  written |= second;
  return error;
}

}  // namespace

int object_sides::read_present(const stripe_object& s, std::uint64_t region, side_bits& bits, bool* there) const {
  bool found = false;
  if (const int e = file_.read_present(region, bits, found)) return e;
  if (there != nullptr) *there = found;
  if (found) return 0;
  bool written = false;
  const int e = look_at_marks(s.sums(), region, written);
  return e == 0 && written ? EBADMSG : e;
}

int object_sides::change_present(const stripe_object& s, std::uint64_t region,
                                 const std::function<void(side_bits&)>& change) {
  const lock_guard lock(mutex_);
  side_bits bits;
  if (const int e = read_present(s, region, bits)) return e;
  change(bits);
  return file_.write_present(region, bits);
}

int object_sides::note_commit(stripe_object& s, std::uint64_t commit, checksum_header& h) {
  if (commit == h.commit) return 0;
  if (commit < h.commit) return ESTALE;
  const int error = s.change_header([&](checksum_header& now) { now.commit = std::max(now.commit, commit); }, false);
  return error != 0 ? error : s.read_header(h);
}

int object_sides::prepare(stripe_object& s, std::uint64_t commit) {
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  if (h.commit > commit) return ESTALE;
  if (const int e = file_.prepare(commit)) return e;
  return s.settle_as_durable();
}

int object_sides::roll_back(stripe_object& s, std::uint64_t commit) {
  checksum_header h;
  if (const int e = s.read_header(h)) return e;
  if (h.commit > commit) return ESTALE;
  if (const int e = file_.roll_back(commit)) return e;
  if ((h.flags & checksum_header::roll_back_due) == 0 && h.commit == commit) return 0;
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
  if (s.read_header(h) != 0 || (h.flags & checksum_header::roll_back_due) != 0) return true;
  may_be_due_ = false;
  return false;
}

int object_sides::mend(const stripe_object& s) {
  may_be_due_ = true;
  return file_.mend([&](std::uint64_t region, bool& written) { return look_at_marks(s.sums(), region, written); });
}

}  // namespace ooc::storage
