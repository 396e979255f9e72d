// Ports of this machine for servers that are to be started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ooc::cluster {

/// "127.0.0.1:7420", "[::1]:7420".
std::string at_port(const std::string& address, unsigned port);

/// Throws io_error (EADDRINUSE) where another program has the port of server `name` at one of the addresses: it would
/// answer in the server's stead.
void require_free(const std::vector<std::string>& addresses, const std::string& name, std::uint16_t port);

/// The first of `count` neighbouring ports that are free at all addresses, below those that the system gives to
/// connections.
std::uint16_t free_ports(const std::vector<std::string>& addresses, unsigned count);

}  // namespace ooc::cluster
