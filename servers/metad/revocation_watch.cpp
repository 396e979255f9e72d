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

revocation_watch::revocation_watch(std::filesystem::path file, std::filesystem::path memory)
    : file_(std::move(file)), memory_(std::move(memory)) {
  if (file_.empty()) return;
  current_ = std::make_shared<const wire::revocations>(wire::revocations::read(memory_));
  read();
}

void revocation_watch::read() {
  seen_ = look_at(file_);
  if (seen_.st_ino == 0 && !current_->empty())
    spdlog::error("list of revoked keys '{}' has gone: restore it; keys of {} users stay revoked", file_.string(),
                  current_->by_user().size());
  auto all = *current_;
  if (!all.add(wire::revocations::read(file_))) return;
  spdlog::info("{}: keys of {} users are revoked", file_.string(), all.by_user().size());
  current_ = std::make_shared<const wire::revocations>(std::move(all));
  try {
    current_->write(memory_);
  } catch (const error& e) {  // a full disk is no reason to serve nobody
    spdlog::error("{}; after this server has ended, the list alone says which keys are revoked", e.what());
  }
}

void revocation_watch::look() {
  if (file_.empty() || same_file(seen_, look_at(file_))) return;
  try {
    read();
  } catch (const error& e) {
    spdlog::error("{}; the keys that were revoked before stay so", e.what());
  }
}

}  // namespace ooc::metad
