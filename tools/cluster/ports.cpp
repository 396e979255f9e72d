#include "cluster/ports.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <random>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/wire/address.hpp"

namespace ooc::cluster {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using storage::file_descriptor;

namespace {

/// Whether nobody listens there.
bool is_free(const std::string& address, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return true;  // a name
  const file_descriptor s(::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int bound = is_v4 ? ::bind(s.get(), reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                          : ::bind(s.get(), reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  return bound == 0 || errno != EADDRINUSE;
}

}  // namespace

std::string at_port(const std::string& address, unsigned port) {
  return wire::server_address{address, std::to_string(port), {}}.text();
}

void require_free(const std::vector<std::string>& addresses, const std::string& name, std::uint16_t port) {
  const auto patience = steady_clock::now() + 2s;  // with one that is just ending
  for (const std::string& a : addresses)
    while (!is_free(a, port)) {
      if (steady_clock::now() >= patience)
        throw io_error({EADDRINUSE, std::generic_category()},
                       name + " cannot have " + at_port(a, port) +
                           "; end what has it, or stop all servers and give another --port");
      std::this_thread::sleep_for(10ms);
    }
}

std::uint16_t free_ports(const std::vector<std::string>& addresses, unsigned count) {
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const unsigned port = std::uniform_int_distribution<unsigned>(10'000, 31'000)(random);
    bool free = true;
    for (unsigned i = 0; i < count && free; ++i)
      for (const std::string& a : addresses) free = free && is_free(a, static_cast<std::uint16_t>(port + i));
    if (free) return static_cast<std::uint16_t>(port);
  }
  throw io_error({EADDRINUSE, std::generic_category()}, "no " + std::to_string(count) + " neighbouring ports are free");
}

}  // namespace ooc::cluster
