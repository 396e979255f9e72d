#include "mpiio/kept_stores.hpp"

#include <sys/stat.h>

#include <utility>

#include "storage/service/store_core.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::mpiio {

// The file that makes a folder one of a store is written once.
std::vector<kept_stores::folder_mark> kept_stores::marks_of(const std::string& url) {
  std::vector<folder_mark> marks;
  const storage::store_url parsed = storage::parse_store_url(url);
  if (parsed.scheme != "local") return marks;
  for (const auto& folder : storage::local_folders(parsed)) {
    struct stat st {};
    (void)::stat((folder / storage::node_file_name).c_str(), &st);  // zeros: it is not there
    marks.push_back({st.st_dev, st.st_ino, st.st_ctim.tv_sec * 1'000'000'000 + st.st_ctim.tv_nsec});
  }
  return marks;
}

kept_stores::used kept_stores::use(const std::string& url) {
  std::vector<folder_mark> marks = marks_of(url);
  std::shared_ptr<storage::store_core> unused;  // closed without the lock
  const lock_guard lock(mutex_);
  if (auto core = open_[url].lock()) {
    const bool was_idle = core == last_ && core.use_count() == 2;  // of `core` and `last_`
    if (core != last_ || marks == marks_) return {store(std::move(core)), was_idle};
    unused = std::exchange(last_, nullptr);
  }
  store s = store::open(url, {.create = false});
  open_[url] = s.core();
  if (keeping_) {
    if (last_) unused = std::move(last_);
    last_ = s.core();
    marks_ = std::move(marks);
  }
  return {std::move(s), false};
}

void kept_stores::forget(const store& s) {
  std::shared_ptr<storage::store_core> unused;
  const lock_guard lock(mutex_);
  std::erase_if(open_, [&](const auto& o) { return o.second.lock() == s.core(); });
  if (last_ == s.core()) unused = std::exchange(last_, nullptr);
}

void kept_stores::keep() {
  const lock_guard lock(mutex_);
  keeping_ = true;
}

void kept_stores::close() {
  std::shared_ptr<storage::store_core> unused;
  const lock_guard lock(mutex_);
  keeping_ = false;
  unused = std::exchange(last_, nullptr);
}

}  // namespace ooc::mpiio
