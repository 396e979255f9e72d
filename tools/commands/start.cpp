// ooc start, ooc stop: one server of this machine; `ooc up --hosts` calls them on every host.
#include <chrono>
#include <iostream>

#include "base/command.hpp"
#include "cluster/background_server.hpp"
#include "cluster/find_program.hpp"

namespace ooc::tool {

namespace {

/// "metad" and "iod-3" are names of servers.
bool is_server(const std::string& name) {
  return name == "metad" ||
         (name.starts_with("iod-") && name.size() > 4 && name.find_first_not_of("0123456789", 4) == name.npos);
}

cluster::background_server server(const command_line& line, const command& self) {
  if (!line.has("dir")) throw usage_mistake("--dir is missing; usage: ooc " + std::string(self.usage));
  const std::string name = line.required("NAME");
  if (!is_server(name)) throw usage_mistake("'" + name + "' is neither metad nor iod-NUMBER");
  return {std::filesystem::absolute(line.text("dir")), name};
}

int run_start(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("dir,d", po::value<std::string>()->value_name("DIR"),
                "the server's folder, its log and its process id lie below");
  line.option()("wait", po::value<std::uint32_t>()->value_name("SECONDS"),
                "how long to wait until it listens, otherwise 10");
  line.positional("NAME");
  line.positional("ARGUMENT", true);
  if (!line.parse(arguments)) return success;
  cluster::background_server s = server(line, self);
  if (s.running()) {
    std::cout << s.name() << " is running already\n";
    return success;
  }
  s.start(cluster::find_program(s.name() == "metad" ? "ooc-metad" : "ooc-iod"), line.texts("ARGUMENT"));
  const bool listens =
      s.wait_listening(std::chrono::steady_clock::now() + std::chrono::seconds(line.number("wait", 10)));
  std::cout << s.name() << " started" << (listens ? "" : ", and does not listen yet; its log is " + s.log().string())
            << "\n";
  return success;
}

int run_stop(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("dir,d", po::value<std::string>()->value_name("DIR"), "that of `ooc start`");
  line.option()("wait", po::value<std::uint32_t>()->value_name("SECONDS"),
                "how long the server may take, otherwise 60");
  line.positional("NAME");
  if (!line.parse(arguments)) return success;
  const cluster::background_server s = server(line, self);
  if (s.ask_to_stop()) {
    s.wait_stopped(std::chrono::steady_clock::now() + std::chrono::seconds(line.number("wait", 60)));
    std::cout << s.name() << " stopped\n";
  } else {
    std::cout << s.name() << " was not running\n";
  }
  return success;
}

}  // namespace

const command start{"start", "start --dir DIR NAME -- ARGUMENTS",
                    "Starts one server (metad, iod-0, ...) in the background, and waits until it listens or has ended.",
                    run_start};
const command stop{"stop", "stop --dir DIR NAME", "Stops a server that `ooc start` started.", run_stop};

}  // namespace ooc::tool
