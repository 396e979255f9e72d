// A store: a name space of files striped over I/O nodes.
//
//     local:/disk1,/disk2       embedded; one folder per I/O node, no server
//     ooc://host:7420           served: a metadata server there, I/O servers wherever it says
//     ooc://host:7420/?deadline=10s     the same, with store_options::deadline
//
// A store is a cheap handle; copies share one connection.  Any thread may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/stats.hpp"
#include "oocarray/units.hpp"

namespace ooc {

namespace storage {
class store_core;
}

struct store_options {
  bool create = true;               ///< make a store where the folders are missing or empty
  unsigned workers = 0;             ///< I/O threads per node; 0: chosen from the number of nodes
  std::uint64_t staging = 256_KiB;  ///< bytes of bounce buffer per I/O thread, multiple of 64 KiB
  bool direct_io = true;            ///< bypass the page cache where the file system can
  bool io_uring = true;             ///< use io_uring where the kernel allows it
  /// Served stores: how long a call may go without word from its server, reconnections included,
  /// before it fails.  A server says every second what it is busy with.  The time counts from when the
  /// server was last heard of or first missed; when it has passed the server counts as gone, and calls
  /// fail at once until it answers again.  After 2 s a line on standard error says what is waited for.
  /// 0: $OOC_DEADLINE ("10s"), else 30 s.  The URL's own (`ooc://host:7420/?deadline=10s`) comes before
  /// both.
  std::chrono::milliseconds deadline{0};
  /// Served stores: file with the cluster key; empty: $OOC_KEY, else ~/.config/oocarray/key.
  std::string key{};
};

class store {
 public:
  /// Opens (or makes) the store at `url`.  Throws usage_error (errc::not_a_store) for a folder that
  /// holds something else, for folders of another store or in another order, and for a URL that
  /// cannot be read; io_error where a folder cannot be used.  A local store that the caller may not write, or
  /// that is on a read-only mount, is opened for reading: changes then throw EACCES or EROFS with the reason, and
  /// what others write meanwhile is seen.  Opening a served store asks its
  /// metadata server only, for which it waits up to the deadline.  A later call that needs the data of an I/O server that is not there
  /// waits for it, and fails after the deadline with an error that names it.
  static store open(std::string_view url, const store_options& options = {});

  std::string url() const;
  /// Identity of the store, made with it.
  std::string uuid() const;
  /// Number of I/O nodes.
  std::uint32_t nodes() const noexcept;
  /// The nodes on this host: all of a local store.  Throws io_error where one does not answer.
  std::vector<std::uint32_t> near_nodes() const;
  /// Sum over the nodes.
  io_stats stats() const;
  /// One per node, in order.
  std::vector<io_stats> node_stats() const;

  /// For the library's own layers and tools.
  const std::shared_ptr<storage::store_core>& core() const noexcept { return core_; }
  explicit store(std::shared_ptr<storage::store_core> core) : core_(std::move(core)) {}

 private:
  std::shared_ptr<storage::store_core> core_;
};

}  // namespace ooc
