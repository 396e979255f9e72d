#include "runtime/open_files.hpp"

#include <map>
#include <mutex>

#include "oocarray/error.hpp"

namespace ooc::detail {
namespace {

/// Who holds which file.  Of the process, as caches are; never destroyed, because arrays with
/// static storage duration may release their claims late.
struct registry {
  std::mutex mutex;
  std::map<std::pair<std::string, storage::file_id>, std::string> holders;
};

registry& open_files() {
  static registry* const r = new registry;
  return *r;
}

}  // namespace

file_claim::file_claim(std::string_view store_uuid, storage::file_id id, std::string_view path,
                       std::string_view holder)
    : uuid_(store_uuid), id_(id) {
  registry& r = open_files();
  const std::lock_guard lock(r.mutex);
  const auto [at, fresh] = r.holders.try_emplace({uuid_, id_}, holder);
  if (!fresh)
    throw usage_error(errc::busy,
                      "'" + std::string(path) + "' is already open in this process (" + at->second +
                          "): use that object, or close it before opening the file again");
  held_ = true;
}

file_claim& file_claim::operator=(file_claim&& o) noexcept {
  if (this != &o) {
    release();
    uuid_ = std::move(o.uuid_);
    id_ = std::exchange(o.id_, 0);
    held_ = std::exchange(o.held_, false);
  }
  return *this;
}

void file_claim::release() noexcept {
  if (!std::exchange(held_, false)) return;
  registry& r = open_files();
  const std::lock_guard lock(r.mutex);
  const auto at = r.holders.find({uuid_, id_});
  if (at != r.holders.end()) r.holders.erase(at);
}

}  // namespace ooc::detail
