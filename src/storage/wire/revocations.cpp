#include "storage/wire/revocations.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::wire {

namespace fs = std::filesystem;

namespace {

constexpr const char* revocations_title = "oocarray-revoked 2\n";

[[noreturn]] void refuse_list(std::error_code code, const fs::path& file, const std::string& why) {
  throw usage_error(code, "list of revoked keys '" + file.string() + "' " + why);
}

/// The last line, of a list that begins with `text`.
std::string end_of_list(const std::string& text) {
  char line[16];
  std::snprintf(line, sizeof line, "end %08x\n", storage::crc32c(text.data(), text.size()));
  return line;
}

[[noreturn]] void fail_list(const fs::path& file, const char* doing) {
  throw io_error({errno, std::generic_category()}, "list of revoked keys '" + file.string() + "' cannot be " + doing);
}

}  // namespace

revocations revocations::read(const fs::path& file) {
  revocations all;
  struct ::stat s {};
  if (::stat(file.c_str(), &s) != 0) {
    if (errno == ENOENT) return all;
    fail_list(file, "examined");
  }
  // A user that may change the list can give a revoked key its rights back.
  if ((s.st_uid != ::geteuid() && s.st_uid != 0) || (s.st_mode & 022) != 0)
    refuse_list({EACCES, std::generic_category()}, file,
                "may be changed by others than this user and root: chown and chmod 644 it");
  std::ifstream in(file, std::ios::binary);
  std::string text;
  std::getline(in, text, '\0');  // there is none: to the end
  if (!in.is_open() || in.bad()) fail_list(file, "read");
  const auto refuse_damaged = [&](const std::string& why) {
    refuse_list(errc::not_a_store, file, "is damaged: " + why + "; restore it, or revoke again into a new one");
  };
  const auto end = text.rfind("end ");
  if (!in.eof() || end == std::string::npos || text.substr(end) != end_of_list(text.substr(0, end)))
    refuse_damaged("its last line is not the checksum of the others");
  text.resize(end);
  std::istringstream lines(text);
  std::string line;
  for (bool first = true; std::getline(lines, line); first = false) {
    if (first && line + "\n" == revocations_title) continue;
    std::istringstream words(line);
    std::int64_t uid = -1, until = -1;
    std::string more;
    if (first || !(words >> uid >> until) || uid < 0 || uid > 0xffffffffLL || until <= 0 || words >> more)
      refuse_damaged("expected 'UID SECONDS' instead of '" + line + "'");
    all.add(static_cast<std::uint32_t>(uid), until);
  }
  return all;
}

void revocations::write(const fs::path& file) const {
  std::ostringstream text;
  text << revocations_title;
  for (const auto& [uid, until] : until_) text << uid << " " << until << "\n";
  text << end_of_list(text.str());
  const fs::path unfinished = file.string() + ".new";
  storage::write_durably(unfinished, text.str());
  // The servers' user reads what root has written, whatever the umask.
  if (::chmod(unfinished.c_str(), 0644) != 0 || ::rename(unfinished.c_str(), file.c_str()) != 0)
    fail_list(file, "written");
  storage::sync_folder(file.has_parent_path() ? file.parent_path() : fs::path("."));
}

void revocations::add(std::uint32_t uid, std::int64_t until) {
  std::int64_t& known = until_[uid];
  known = std::max(known, until);
}

bool revocations::add(const revocations& others) {
  const revocations before = *this;
  for (const auto& [uid, until] : others.until_) add(uid, until);
  return *this != before;
}

std::int64_t revocations::until(std::uint32_t uid) const noexcept {
  const auto known = until_.find(uid);
  return known == until_.end() ? 0 : known->second;
}

bool revocations::cover(const key_holder& key) const noexcept {
  return key.user && key.made <= until(key.user->uid) && until_.contains(key.user->uid);
}

bool revocations::cover(std::string_view identity) const {
  if (until_.empty()) return false;
  const auto holder = parse_identity(identity);
  return holder && cover(*holder);
}

fs::path revocations_of(const fs::path& key_file) { return key_file.string() + ".revoked"; }

}  // namespace ooc::wire
