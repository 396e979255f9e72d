// The object `oocarray-client.NUMBER` of a client of a metadata server: where the client can be shut out, and with it
// the ranks that write under its claims.
//
//     a rank joins                 its address becomes an attribute, unless the object says by then that it has ended
//     the server ends the client   the object says so, and then the ranks are all that it names
//
// So no rank writes that is not shut out with the client.
//
// All calls wait.  Threads: any.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/rados/rados_pool.hpp"

namespace ooc::storage {

inline constexpr std::string_view client_prefix = "oocarray-client.";

std::string client_object(const std::string& number);

/// By a client of a server, on each connection to it: before it gets anything for whose sake it may be shut out.
void introduce_client(const rados_pool& pool, const std::string& number);

/// By the server, of a client that is to be shut out: the addresses of it and of its ranks, to which none is added from
/// now on.  Throws io_error.
std::vector<std::string> end_client_object(rados_pool& pool, const std::string& number);

/// This client as a rank of others.
class joined_clients : public std::enable_shared_from_this<joined_clients> {
 public:
  /// `number`: its own.
  joined_clients(std::shared_ptr<rados_pool> pool, std::string number)
      : pool_(std::move(pool)), number_(std::move(number)) {}

  /// While the pointer lives, who shuts out `client` shuts out this process as well.  Throws io_error, ESTALE where
  /// `client` has ended.
  std::shared_ptr<void> join(const std::string& client) OOC_EXCLUDES(mutex_);

 private:
  void leave(const std::string& client) noexcept OOC_EXCLUDES(mutex_);

  const std::shared_ptr<rados_pool> pool_;
  const std::string number_;
  const pid_t process_ = ::getpid();
  mutex mutex_;
  std::map<std::string, std::size_t> joined_ OOC_GUARDED_BY(mutex_);  ///< so many pointers
};

}  // namespace ooc::storage
