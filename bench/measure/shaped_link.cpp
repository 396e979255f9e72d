#include "measure/shaped_link.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

namespace bench {
namespace {

using ooc::storage::file_descriptor;

file_descriptor this_network() { return file_descriptor(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)); }

file_descriptor new_network() {
  if (::unshare(CLONE_NEWNET) != 0)
    throw std::runtime_error("no network name spaces here: " + std::generic_category().message(errno));
  return this_network();
}

void command(const std::string& words) {
  if (std::system((words + " >/dev/null").c_str()) != 0)
    throw std::runtime_error("no shaped link here: `" + words + "` failed");
}

/// This end: its address, and the shaper of what leaves by it; 50 ms of queue, as a switch has.
void set_up(const std::string& device, const std::string& address, unsigned mbit) {
  command("ip link set lo up");
  command("ip address add " + address + "/30 dev " + device);
  command("ip link set " + device + " up");
  command("tc qdisc add dev " + device + " root tbf rate " + std::to_string(mbit) + "mbit burst 256k latency 50ms");
}

}  // namespace

shaped_link::shaped_link(unsigned mbit) : home_(this_network()) {
  try {
    client_ = new_network();
    server_ = new_network();
    command("ip link add wire type veth peer name wire netns /proc/" + std::to_string(::getpid()) + "/fd/" +
            std::to_string(client_.get()));
    set_up("wire", server_address_, mbit);
    enter(host::client);
    set_up("wire", "10.77.0.2", mbit);
  } catch (...) {
    enter(host::home);
    throw;
  }
  enter(host::home);
}

void shaped_link::enter(host h) const {
  const file_descriptor& to = h == host::home ? home_ : h == host::server ? server_ : client_;
  if (::setns(to.get(), CLONE_NEWNET) != 0) throw std::system_error(errno, std::generic_category(), "setns");
}

}  // namespace bench
