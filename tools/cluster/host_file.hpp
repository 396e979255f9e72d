// The host file of `ooc up --hosts`: which servers run where.
//
//     # host   role   folder             addresses, where not HOST:PORT with the usual port
//     head     metad  /srv/ooc
//     node1    iod    /data/ooc          10.0.0.1:7421 10.1.0.1:7421
//     node2    iod    /data/ooc
//
// One line for each server, '#' begins a comment; exactly one `metad`.  I/O servers are numbered in
// the order of their lines, which must therefore stay.  The usual ports: 7420 for the metadata
// server, 7421 + i for I/O server i.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ooc::cluster {

struct host_server {
  std::string host;
  std::string name;                    ///< "metad", "iod-0", ...
  std::string folder;                  ///< on that host: the server's own, its log and its process id lie below
  std::vector<std::string> addresses;  ///< with ports, at least one
};

/// The metadata server first, then the I/O servers in order.  Throws usage_error with file and line
/// for what cannot be meant, io_error where the file cannot be read.
std::vector<host_server> read_host_file(const std::filesystem::path& file);

}  // namespace ooc::cluster
