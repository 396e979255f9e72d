// The shares that a node has open, so that a request need not open files.
//
// Holds up to `limit` shares, dropping the one that was used longest ago and is not in use.  Two
// `share` objects for one file never exist at the same time: its locks depend on that.  Any thread.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "storage/share.hpp"

namespace ooc::storage {

class share_cache {
 public:
  share_cache(const node_folder& folder, bool direct_io, std::size_t limit = 512)
      : folder_(folder), direct_io_(direct_io), limit_(limit) {}

  /// The open share; kept open at least as long as the caller keeps the pointer.  Returns an errno;
  /// EUCLEAN where what is there is not this share, and `why`.
  int get(const share_identity& who, std::shared_ptr<share>& out, std::string& why);
  /// The share if it is open already.
  std::shared_ptr<share> find(file_id id);
  /// Forgets a share whose files are gone.
  void drop(file_id id);

 private:
  using order = std::list<std::pair<file_id, std::shared_ptr<share>>>;  // last used first

  void trim(std::size_t limit);

  const node_folder& folder_;
  const bool direct_io_;
  const std::size_t limit_;
  std::mutex mutex_;
  order order_;
  std::unordered_map<file_id, order::iterator> by_id_;
};

}  // namespace ooc::storage
