// Each text ends with the message of its code (see error.cpp).
#include "storage/node/node_messages.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace ooc::storage {
namespace {

failure with_cause(std::error_code code, std::string what) {
  what += ": " + code.message();
  return {code, std::move(what)};
}

std::string subject(const node_folder& folder, const operation& op) {
  std::string t = "node " + folder.path().string() + ": " + name_of(op.kind) + " of ";
  if (!op.file->name.empty()) t += "'" + op.file->name + "' ";
  return t + "(" + node_folder::relative(op.file->id) + ") failed";
}

bool has_limit_on_file_sizes() {
  rlimit r{};
  return ::getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur != RLIM_INFINITY;
}

const char* remedy(int error) {
  switch (error) {
    case ENOSPC: return "; free space there or remove files";
    case EDQUOT: return "; the owner's quota is used up";
    case EMFILE:
    case ENFILE: return "; raise the limit of open files (ulimit -n)";
    case EFBIG:
      return has_limit_on_file_sizes() ? "; a limit on file sizes is set (ulimit -f)"
                                       : "; the file system takes no file that large: spread it over more nodes";
    default: return "";
  }
}

}  // namespace

failure node_messages::failed(const operation& op, int error, const std::string& more) {
  std::string t = subject(folder_, op);
  if (!more.empty()) t += ", " + more;
  if (error == EIO && op.target && op.target->sync_failed())
    t += ", it could not be made durable, and what was not yet may be lost; write it anew to another file";
  return with_cause({error, std::generic_category()}, t + remedy(error));
}

failure node_messages::failed(const operation& op, const object_error& e) {
  if (e.error != 0)
    return failed(op, e.error, std::string(e.step) + " at byte " + std::to_string(e.offset) + " of the stripe object");
  return with_cause(e.found == verdict::torn ? errc::torn : errc::corrupt,
                    subject(folder_, op) + ", " + e.step + ": " + chunk_text(op, {e.offset / chunk_size, e.found}));
}

failure node_messages::refused(const operation& op, const std::string& why) {
  return with_cause(errc::invalid_request, subject(folder_, op) + ", " + why);
}

failure node_messages::damaged(const operation& op, const std::string& why) {
  return with_cause(errc::corrupt, subject(folder_, op) + ", " + why);
}

failure node_messages::lost_claim(const operation& op, const checksum_header& h) {
  return h.claims.holds(op.file->claim) ? failure{} : failed(op, ESTALE, claim_has_ended);
}

failure node_messages::was_cut_off(const operation& op) {
  return with_cause(errc::cut_off,
                    subject(folder_, op) + ", another program has made it shorter since this one asked for its size");
}

failure node_messages::was_moved(const operation& op) {
  return with_cause(errc::cut_off, subject(folder_, op) +
                                       ", the file has been given other stripe objects, or is being given some, since "
                                       "this program opened it: open it again");
}

failure node_messages::is_late(const operation& op, std::uint64_t generation) {
  return with_cause(errc::conflict, subject(folder_, op) +
                                        ", nothing was changed: the file has been opened for writing since this one "
                                        "looked at it (generation " +
                                        std::to_string(op.file->generation) + ", by now " + std::to_string(generation) +
                                        "), and what it was to lose may be somebody else's bytes");
}

// "bytes [0, 512) and [2048, 2560) of the file (stripe object offset 0) ...", in file offsets.
std::string node_messages::chunk_text(const operation& op, const bad_chunk& c) {
  const striping& s = op.file->striping;
  const std::uint64_t end = std::min((c.chunk + 1) * chunk_size, s.object_size(op.stripe_index, op.file->size));
  std::string t = "bytes ";
  unsigned named = 0;
  for (std::uint64_t at = c.chunk * chunk_size; at < end;) {
    const std::uint64_t n = std::min(end - at, s.sf - at % s.sf);
    const std::uint64_t from = s.file_offset(op.stripe_index, at);
    std::uint64_t length = n;
    if (s.nn == 1) length = end - at;
    if (named == 8) {
      t += " and more";
      break;
    }
    if (named++ > 0) t += ", ";
    t += "[" + std::to_string(from) + ", " + std::to_string(from + length) + ")";
    at += length;
  }
  t += " of the file (chunk " + std::to_string(c.chunk) + " of the stripe object)";

  checksum_header h;
  const bool power_lost = op.target->sums().read_header(h) == 0 && (h.flags & checksum_header::power_lost) != 0;
  if (c.found == verdict::torn)
    t += " are torn: an overwrite was cut short; write them again, whole 4 KiB at a time";
  else if (c.found == verdict::lost)
    t += power_lost ? " are lost: their checksums were not durable at a loss of power; write them again"
                    : " are lost: their checksums are gone, so nobody can say what was written there";
  else if (power_lost)
    t += " were not durable at a loss of power (no sync after they were written); write them again";
  else
    t += " are damaged on disk";
  return t;
}

}  // namespace ooc::storage
