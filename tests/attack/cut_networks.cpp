// Servers and a client in network name spaces of their own, with a wire between that is cut and
// mended while the client writes, and that loses packets where the kernel knows netem.  What the
// client was told is there; a wire that stays cut is an error within the deadline and five seconds.
//
// The name spaces are known in the round's own mount name space only, and end with it.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <iostream>

#include "attack/history.hpp"
#include "oocarray/error.hpp"
#include "oocarray/runtime.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;
class wire_between {
 public:
  wire_between() {
    std::error_code ignored;
    std::filesystem::create_directories("/run/netns", ignored);
    if (::mount("tmpfs", "/run/netns", "tmpfs", 0, nullptr) != 0)
      throw finding(verdict::not_run, "/run/netns cannot be made private: " + std::generic_category().message(errno));
    for (const std::string& n : {servers_, client_}) {
      must_run({"ip", "netns", "add", n});
      must_run({"ip", "-n", n, "link", "set", "lo", "up"});
    }
    must_run({"ip", "-n", servers_, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", client_});
    address(servers_, "10.77.0.1/30");
    address(client_, "10.77.0.2/30");
  }

  const std::string& servers() const noexcept { return servers_; }
  void cut() const { must_run({"ip", "-n", servers_, "link", "set", "wire", "down"}); }
  void mend() const { must_run({"ip", "-n", servers_, "link", "set", "wire", "up"}); }
  /// False where the kernel does not know how.
  bool lose_packets(std::uint64_t percent) const {
    return run_command({"tc", "-n", servers_, "qdisc", "replace", "dev", "wire", "root", "netem", "loss",
                        std::to_string(percent) + "%"})
               .status == 0;
  }
  /// Puts this process at the client's end.
  void enter_client() const {
    const int fd = ::open(("/run/netns/" + client_).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) throw std::system_error(errno, std::generic_category(), "setns");
    ::close(fd);
  }

 private:
  static void address(const std::string& end, const std::string& a) {
    must_run({"ip", "-n", end, "address", "add", a, "dev", "wire"});
    must_run({"ip", "-n", end, "link", "set", "wire", "up"});
  }
  std::string servers_ = "attack-servers", client_ = "attack-client";
};

}  // namespace

void cut_networks(round& r) {
  if (::geteuid() != 0) throw finding(verdict::not_run, "needs root, for network name spaces");
  const wire_between wire;
  const std::uint64_t nodes = r.between(1, 2);
  const std::string key = (r.folder() / "key").string(), dir = (r.folder() / "store").string();
  must_run({OOC_COMMAND, "keygen", key});
  ::setenv("OOC_KEY", key.c_str(), 1);
  const command_result up =
      run_command({"ip", "netns", "exec", wire.servers(), OOC_COMMAND, "up", "--dir", dir, "--nodes",
                   std::to_string(nodes), "--port", "0", "--key", key, "--addresses", "10.77.0.1"});
  if (up.status != 0) throw finding(verdict::failed, "ooc up: " + up.output);
  const auto at = up.output.find("ooc://");
  const std::string url = up.output.substr(at, up.output.find('\n', at) - at);

  const bool stays_cut = r.one_in(4);
  const history h(r.dice()(), r.between(1000, 40000), stays_cut ? 2000 : 80, r.one_in(2));
  writer_options o = draw_writer(r, url, nodes);
  o.deadline = stays_cut ? milliseconds(3000) : milliseconds(30'000);
  o.pause = milliseconds(10);
  report_pipe told;
  const pid_t writer = r.in_child([&] {
    wire.enter_client();
    try {
      write_history(h, o, told, r.counts());
    } catch (const error& e) {
      std::cout << "the writer: " << e.what() << std::endl;
      return gave_up;
    }
    return 0;
  });
  told.writer_started();
  if (r.one_in(2)) std::cout << "packets are lost: " << wire.lose_packets(r.between(1, 8)) << std::endl;
  std::uint64_t reached = told.wait_for(r.between(1, 20), std::chrono::seconds(40));
  if (stays_cut) {
    wire.cut();
    const int status =
        r.wait_for(writer, o.deadline + std::chrono::seconds(5),
                   "a writer whose network is cut (deadline " + std::to_string(o.deadline.count()) + " ms)");
    if (status != 0 && status != gave_up && status != fatal_exit_status)
      throw finding(verdict::failed, "the writer ended with status " + std::to_string(status));
    wire.mend();
  } else {
    for (std::uint64_t n = r.between(1, 3); n > 0; --n) {
      const milliseconds away(r.between(10, 2500));
      std::cout << "cut for " << away.count() << " ms" << std::endl;
      wire.cut();
      testing::random_pause(away);
      wire.mend();
      reached = told.wait_for(reached + r.between(1, 15), std::chrono::seconds(40));
    }
    if (const int status = r.wait_for(writer, std::chrono::seconds(90), "the writer"))
      throw finding(verdict::failed, "the network was cut for less than 3 s at a time, the writer ended with status " +
                                         std::to_string(status));
  }
  const std::uint64_t kept = told.last();
  if (kept == 0) return;
  o.deadline = milliseconds(30'000);
  const pid_t checker = r.in_child([&] {
    wire.enter_client();
    check_history(h, o, {kept, kept + 1, true}, r);
    verify_store(url, false);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(80), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
}

}  // namespace ooc::attack
