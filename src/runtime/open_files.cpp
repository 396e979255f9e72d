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

file_claim::file_claim(storage::store_core& store, storage::file_id id, std::string_view path,
                       std::string_view holder, writing w)
    : uuid_(store.uuid()), id_(id) {
  registry& r = open_files();
  const std::lock_guard lock(r.mutex);
  const auto [at, fresh] = r.holders.try_emplace({uuid_, id_}, holder);
  if (!fresh)
    throw usage_error(errc::busy,
                      "'" + std::string(path) + "' is already open in this process (" + at->second +
                          "): use that object, or close it before opening the file again");
  try {
    if (w != writing::no) {
      writer_ = store.metadata().claim_writer(id_, w == writing::together);
      if (!writer_)
        throw usage_error(errc::busy,
                          "'" + std::string(path) +
                              "' is open for writing in another process: open it for reading only, "
                              "or with options.shared = true in all of them");
    }
  } catch (...) {
    r.holders.erase(at);
    throw;
  }
  held_ = true;
}

file_claim& file_claim::operator=(file_claim&& o) noexcept {
  if (this != &o) {
    release();
    uuid_ = std::move(o.uuid_);
    id_ = std::exchange(o.id_, 0);
    held_ = std::exchange(o.held_, false);
    writer_ = std::move(o.writer_);
  }
  return *this;
}

void file_claim::release() noexcept {
  if (!std::exchange(held_, false)) return;
  writer_.reset();
  registry& r = open_files();
  const std::lock_guard lock(r.mutex);
  const auto at = r.holders.find({uuid_, id_});
  if (at != r.holders.end()) r.holders.erase(at);
}

}  // namespace ooc::detail
