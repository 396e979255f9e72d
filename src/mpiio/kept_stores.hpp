// The stores that this process uses for MPI-IO.
//
// Files that are open at the same time share the store, with its connections and threads.  The store that was opened
// last stays open after its last file was closed, for opening a store takes longer than opening a file in it.
// Meanwhile there may be another one in its place: folders that were removed, or made anew, are seen before it is used
// again, and what fails in a store that had no open file is tried once more in the store that is there now.
//
// Any thread may call.  Throws ooc::error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"
#include "storage/base/mutex.hpp"

namespace ooc::mpiio {

class kept_stores {
 public:
  /// Calls f(const store&) and returns what it does.
  template <class F>
  auto in_store(const std::string& url, F&& f) {
    const used u = use(url);
    if (!u.was_idle) return f(u.of);
    try {
      return f(u.of);
    } catch (const error& e) {
      if (e.code() == std::errc::timed_out) throw;  // a second try would take as long
    }
    forget(u.of);
    return f(use(url).of);
  }

  /// From now on the last store is kept; until close() it is not.
  void keep();
  void close();

 private:
  struct used {
    store of;
    bool was_idle;
  };
  /// A mark by which the folders of an embedded store are known to be those that were opened; a served store has
  /// none.
  struct folder_mark {
    dev_t device;
    ino_t number;
    std::int64_t changed_ns;
    bool operator==(const folder_mark&) const = default;
  };

  used use(const std::string& url) OOC_EXCLUDES(mutex_);
  void forget(const store& s) OOC_EXCLUDES(mutex_);
  static std::vector<folder_mark> marks_of(const std::string& url);

  mutex mutex_;
  bool keeping_ OOC_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::weak_ptr<storage::store_core>> open_ OOC_GUARDED_BY(mutex_);  // by URL
  std::shared_ptr<storage::store_core> last_ OOC_GUARDED_BY(mutex_);
  std::vector<folder_mark> marks_ OOC_GUARDED_BY(mutex_);  // of last_
};

}  // namespace ooc::mpiio
