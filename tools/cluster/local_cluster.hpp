// A served store on this machine: one metadata server and its I/O servers, in the background.
//
// Everything lies in one folder: `metad` and `iod-0` ... hold the store, `log` the logs, `run` the
// process ids, and `cluster.json` how it was started, so that it starts the same way again; it is
// durable before a server starts, and where it is damaged all the same, up() writes it anew.  The
// metadata server has the port P, I/O server i P + 1 + i, at each address: a server that is started
// again is found where it was.
//
// One process at a time works on a folder; others wait.  Failures throw ooc::error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cluster/background_server.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::cluster {

inline constexpr std::uint16_t default_port = 7420;

struct cluster_settings {
  unsigned nodes = 1;
  std::uint16_t port = default_port;                ///< of the metadata server; 0: free ones are looked for
  std::vector<std::string> addresses{"127.0.0.1"};  ///< without ports; every server has them all
  std::string key;                                  ///< file; empty: none
  bool encrypt = true;                              ///< where there is a key, frames after the handshake
  bool direct_io = false;                           ///< the I/O servers bypass the page cache
  std::uint32_t iod_memory = 0;                     ///< MiB for transfers in each I/O server; 0: its default

  bool operator==(const cluster_settings&) const = default;
};

class local_cluster {
 public:
  /// `dir` is made if it is missing.
  explicit local_cluster(const std::filesystem::path& dir);

  /// Whether servers were ever started in `dir`.
  static bool is_there(const std::filesystem::path& dir);

  /// How it was started before; nothing where that was never recorded, or cannot be read.
  const std::optional<cluster_settings>& recorded() const noexcept { return recorded_; }

  /// Throws usage_error (errc::corrupt) with the remedy where cluster.json is there and damaged.
  void require_readable() const;

  struct started {
    unsigned servers = 0;              ///< that serve now and did not run before
    std::string url;                   ///< of the store
    std::vector<std::string> missing;  ///< a line for each I/O server that does not serve, with the remedy
  };
  /// Starts what does not run, or ends meanwhile, and waits until all servers have found each other and answer, at most
  /// `patience`.  An I/O server of a store that was there before may be missing, as where another program has its port:
  /// the others go on.  Where further nodes would have ports that are taken, nothing is changed.  No server is started
  /// for a node whose folder is missing or empty though the store has data there: its disk may not be mounted.  With
  /// `forget` the metadata server is started anew and forgets which folder that node had, so a new, empty one takes its
  /// place.  If up() fails, the servers that this call has started are stopped.
  started up(const cluster_settings& s, std::chrono::seconds patience, std::optional<unsigned> forget = {});

  /// Stops what runs and waits for it; a line for each server.  All are asked to stop before one
  /// that does not makes it fail.
  std::vector<std::string> down(std::chrono::seconds patience);

 private:
  friend class bringing_up;

  std::vector<background_server> servers(unsigned nodes) const;
  void record(const cluster_settings& s);
  void require_metadata(unsigned nodes) const;
  unsigned nodes_there() const;

  std::filesystem::path dir_;
  storage::file_descriptor lock_;
  std::optional<cluster_settings> recorded_;
  std::string damage_;  // why cluster.json cannot be read; empty: it can, or is not there
};

/// Arguments of the metadata server, and of I/O server `node`, in `folder`.
std::vector<std::string> metad_arguments(const cluster_settings& s, const std::filesystem::path& folder);
std::vector<std::string> iod_arguments(const cluster_settings& s, unsigned node, const std::filesystem::path& folder);

/// "ooc://127.0.0.1:7420/".
std::string cluster_url(const cluster_settings& s);

}  // namespace ooc::cluster
