#include "metad/revocation_watch.hpp"

#include <spdlog/spdlog.h>

#include <utility>

#include "oocarray/error.hpp"

namespace ooc::metad {

namespace {

struct ::stat look_at(const std::filesystem::path& file) {
  struct ::stat s {};
  if (::stat(file.c_str(), &s) != 0) s = {};
  return s;
}

bool same_file(const struct ::stat& a, const struct ::stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

}  // namespace

revocation_watch::revocation_watch(std::filesystem::path file) : file_(std::move(file)) {
  if (!file_.empty()) read();
}

void revocation_watch::read() {
  seen_ = look_at(file_);
  auto now = std::make_shared<const wire::revocations>(wire::revocations::read(file_));
  if (!now->empty() || current_)
    spdlog::info("{}: keys of {} users are revoked", file_.string(), now->by_user().size());
  current_ = std::move(now);
}

void revocation_watch::look() {
  if (file_.empty()) return;
  const struct ::stat now = look_at(file_);
  if (same_file(seen_, now)) return;
  try {
    if (now.st_ino == 0 && !current_->empty()) {
      seen_ = now;
      throw usage_error(std::make_error_code(std::errc::no_such_file_or_directory),
                        "list of revoked keys '" + file_.string() + "' has gone: restore it");
    }
    read();
  } catch (const error& e) {
    spdlog::error("{}; the keys that were revoked before stay so", e.what());
  }
}

}  // namespace ooc::metad
