// A served store whose servers run on several hosts.
//
// With ssh every host starts its servers in the background (`ooc start`) and knows them by the
// process ids below their folders.  With srun the processes of srun do, in `dir` on this machine.
// Failures throw ooc::error that names host and server.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/host_file.hpp"
#include "cluster/launcher.hpp"
#include "cluster/server_queries.hpp"

namespace ooc::cluster {

struct host_options {
  launcher how{"ssh"};
  std::string ooc = "ooc";       ///< the ooc command on the hosts
  std::string key;               ///< file with the cluster key, the same name on every host; empty: none
  bool encrypt = true;           ///< where there is a key, frames after the handshake
  bool direct_io = false;        ///< the I/O servers bypass the page cache
  std::uint32_t iod_memory = 0;  ///< MiB for transfers in each I/O server; 0: its default
  std::filesystem::path dir;     ///< srun: where logs and process ids lie
};

class host_cluster {
 public:
  host_cluster(std::vector<host_server> servers, host_options options);

  struct started {
    std::vector<std::string> lines;    ///< one for each server
    std::vector<std::string> missing;  ///< one for each I/O server that does not serve
  };
  /// Starts what does not run and waits until all answer.  I/O servers may be missing, as in local_cluster::up(), if
  /// others answer, also those whose hosts cannot be reached.  With `forget` the metadata server is started anew, and
  /// forgets which folder that node had.
  started up(std::chrono::seconds patience, std::optional<unsigned> forget = {});

  struct stopped {
    std::vector<std::string> lines;   ///< one for each server that does not run any more
    std::vector<std::string> failed;  ///< one for each other, with the cause
  };
  /// Stops the I/O servers, then the metadata server, and goes on after one that it cannot stop.
  stopped down(std::chrono::seconds patience);
  std::string url() const;

 private:
  struct attempt;

  std::vector<std::string> arguments(const host_server& s) const;
  bool knows_fewer_nodes() const;
  void require_key() const;
  /// Throws where the metadata are missing and I/O servers belong to a store.
  bool makes_new_store() const;
  /// The store that a server's folder belongs to, as its host says; empty: none yet.
  std::string store_of(const host_server& s) const;
  void say_what_serves(const std::vector<pulse>& pulses, started& done) const;
  /// Names of servers that nobody needs any more, as their nodes are retired; none where the metadata server does not
  /// say so within `patience`.
  std::set<std::string> retired(std::chrono::seconds patience) const;
  attempt start_all(std::chrono::seconds patience, std::optional<unsigned> forget) const;
  std::string start_if_it_can_be(const host_server& s, const std::vector<std::string>& more, attempt& a) const;
  std::string start(const host_server& s, const std::vector<std::string>& more = {}) const;
  std::string stop(const host_server& s, std::chrono::seconds patience) const;

  std::vector<host_server> servers_;
  host_options options_;
};

}  // namespace ooc::cluster
