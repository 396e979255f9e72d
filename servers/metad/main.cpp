// ooc-metad: the metadata server of a store.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>

#include "daemon/command_line.hpp"
#include "daemon/connection_limit.hpp"
#include "daemon/metrics_endpoint.hpp"
#include "daemon/run.hpp"
#include "metad/metad_server.hpp"
#include "metad/rados_home.hpp"
#include "oocarray/error.hpp"

namespace {

using namespace ooc;
namespace po = boost::program_options;

std::chrono::seconds seconds(const servers::server_command_line& line, const char* name) {
  const auto n = line.get<unsigned>(name);
  if (n == 0) throw usage_error(errc::invalid_request, std::string("--") + name + " 0: give seconds");
  return std::chrono::seconds(n);
}

int run(int argc, char** argv) {
  servers::server_command_line line("ooc-metad",
                                    "Keeps the name space of a store; its data are on I/O servers (ooc-iod).");
  line.option()("folder", po::value<std::string>()->required(),
                "where the metadata are kept; made into a store if missing or empty")(
      "listen", po::value<std::vector<std::string>>()->composing(),
      "ADDRESS:PORT, [IPv6]:PORT or unix:/PATH; several may be given (default 127.0.0.1:7420)")(
      "nodes", po::value<std::uint32_t>()->default_value(0),
      "number of I/O servers; needed when the store is made, and when it is to have more")(
      "database", po::value<std::string>(),
      "rados:POOL[/NAMESPACE]: the metadata are there, beside the bytes, in RADOS (Ceph), and the folder has only the "
      "server's keys; of several such servers one serves, and the others wait to take its place")(
      "gateways", po::value<std::uint32_t>(),
      "of a store in RADOS: programs reach it through so many I/O servers (ooc-iod --backend rados:...), and not by "
      "keys of Ceph; kept with the store; 0: by keys of Ceph again")(
      "announce", po::value<std::vector<std::string>>()->composing(),
      "addresses that clients of a store in RADOS are told, if they differ from --listen")(
      "key", po::value<std::string>()->default_value(""),
      "file with the cluster key (default $OOC_KEY, ~/.config/oocarray/key); without a key only "
      "this machine is served")("max-connections", po::value<unsigned>()->default_value(0),
                                "at once; otherwise 4096, or half of the files that the process may have open")(
      "grace", po::value<unsigned>()->default_value(30),
      "seconds a client that lost its connection may take to come back")(
      "memory", po::value<std::uint64_t>()->default_value(64),
      "MiB for calls and answers that are large, shared by the clients; whatever they do, the server "
      "takes at most 64 KiB for each connection more, and what the database's cache takes")(
      "capability-life", po::value<unsigned>()->default_value(3600),
      "seconds that the right to a file holds before it must be renewed")(
      "forget-node", po::value<std::uint32_t>(),
      "forget which folder this node had: another, empty one may take its place")(
      "missing-node", po::value<std::vector<std::uint32_t>>()->composing(),
      "this node's folder is not there: clients do not wait for it, until it registers; several may be given");
  line.encrypt_option();
  line.metrics_option();
  if (!line.parse(argc, argv)) return 0;

  metad::metad_options o;
  o.folder = line.get<std::string>("folder");
  o.nodes = line.get<std::uint32_t>("nodes");
  o.owner = {::geteuid(), ::getegid()};
  o.listen =
      line.has("listen") ? line.get<std::vector<std::string>>("listen") : std::vector<std::string>{"127.0.0.1:7420"};
  o.key = wire::find_server_key(line.get<std::string>("key"));
  if (o.key) o.revoked = wire::revocations_of(wire::find_key_file(line.get<std::string>("key")));
  o.frames = line.frames();
  o.max_connections = servers::connection_limit(line.get<unsigned>("max-connections"));
  o.memory = line.get<std::uint64_t>("memory") << 20;
  if (o.memory < 16 << 20 || o.memory > std::uint64_t{1} << 40)
    throw usage_error(errc::invalid_request, "--memory is 16 MiB to 1 TiB");
  o.grace = seconds(line, "grace");
  o.capability_life = seconds(line, "capability-life");
  if (line.has("missing-node")) o.missing_nodes = line.get<std::vector<std::uint32_t>>("missing-node");
  if (line.has("gateways")) {
    o.gateways = line.get<std::uint32_t>("gateways");
    if (!line.has("database") || *o.gateways > 1024)
      throw usage_error(errc::invalid_request, "--gateways is for a store in RADOS (--database), and at most 1024");
  }
  if (line.has("forget-node")) o.forget_node = line.get<std::uint32_t>("forget-node");

  // Made when it is our turn: until then a signal ends the process at once.
  std::optional<servers::server_loop> loop;
  std::optional<metad::metad_server> server;
  std::unique_ptr<metad::rados_home> home;  // goes first: with the server's database the next one gets its place
  const auto make = [&](const metad::metad_options& options) {
    loop.emplace(1);
    server.emplace(loop->context(), options);
  };
  if (line.has("database"))
    home = metad::serve_from_rados(line.get<std::string>("database"), o, make,
                                   [&](const std::string& why) { loop->fail(why); });
  else
    make(o);
  server->start();
  servers::metrics_endpoint metrics(loop->context(), [&] { return server->metrics(); });
  metrics.start(line.metrics_addresses());
  if (home) {
    const auto given =
        line.has("announce") ? line.get<std::vector<std::string>>("announce") : std::vector<std::string>{};
    home->publish(servers::announced(given, server->addresses()));
  }
  spdlog::info("serving store {} from {}", server->store_uuid(),
               home ? line.get<std::string>("database") : o.folder.string());
  // Last: who waits for it (`ooc start`) knows then that it has not failed.
  for (const std::string& a : server->addresses()) spdlog::info("listening on {}", a);
  loop->run([&] {
    metrics.stop();
    server->stop();
  });
  spdlog::info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ooc::servers::run_main("ooc-metad", [&] { return run(argc, argv); });
}
