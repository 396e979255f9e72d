// ooc-iod: an I/O server of a store, with one folder of its data.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "daemon/command_line.hpp"
#include "daemon/connection_limit.hpp"
#include "daemon/listener_group.hpp"
#include "daemon/metrics_endpoint.hpp"
#include "daemon/registration.hpp"
#include "daemon/run.hpp"
#include "iod/iod_folder.hpp"
#include "iod/iod_metrics.hpp"
#include "iod/iod_server.hpp"
#include "oocarray/error.hpp"

namespace {

using namespace ooc;
namespace po = boost::program_options;
using strings = std::vector<std::string>;

int run(int argc, char** argv) {
  servers::server_command_line line("ooc-iod", "Holds one node's stripe objects of the files of a store (ooc-metad).");
  line.option()("folder", po::value<std::string>(), "where the data are kept; made if missing or empty")(
      "backend", po::value<std::string>(),
      "rados:POOL[/NAMESPACE]: in the place of a folder; this server is a gateway of a store in RADOS (Ceph), for "
      "programs without a key of Ceph (ooc-metad --gateways)")("node", po::value<std::uint32_t>()->required(),
                                                               "number of this node in the store, from 0")(
      "metad", po::value<std::string>()->default_value("127.0.0.1:7420"), "address of the metadata server")(
      "listen", po::value<strings>()->composing(),
      "ADDRESS:PORT, [IPv6]:PORT or unix:/PATH; several may be given, and clients spread over them "
      "(default 127.0.0.1:0, any free port)")("announce", po::value<strings>()->composing(),
                                              "addresses that clients are told, if they differ from --listen")(
      "key", po::value<std::string>()->default_value(""),
      "file with the cluster key (default $OOC_KEY, ~/.config/oocarray/key); without a key only "
      "this machine is served")("memory", po::value<std::uint64_t>()->default_value(64),
                                "MiB for transfers (three quarters) and descriptions of "
                                "requests, shared by the clients; whatever they do, the server "
                                "takes at most 64 KiB for each connection more")(
      "workers", po::value<unsigned>()->default_value(4), "requests served at a time")(
      "threads", po::value<unsigned>()->default_value(1), "threads for the network")(
      "direct-io", po::bool_switch(), "bypass the page cache of this machine")(
      "max-connections", po::value<unsigned>()->default_value(0),
      "at once; otherwise 4096, or half of the files that the process may have open");
  line.encrypt_option();
  line.metrics_option();
  if (!line.parse(argc, argv)) return 0;

  iod::iod_options o;
  if (line.has("folder") == line.has("backend"))
    throw usage_error(errc::invalid_request, "give the folder with the data (--folder), or --backend rados:...");
  if (line.has("folder")) o.folder = line.get<std::string>("folder");
  o.node = line.get<std::uint32_t>("node");
  o.listen = line.has("listen") ? line.get<strings>("listen") : strings{"127.0.0.1:0"};
  o.key = wire::find_server_key(line.get<std::string>("key"));
  o.frames = line.frames();
  o.memory = line.get<std::uint64_t>("memory") << 20;
  o.workers = line.get<unsigned>("workers");
  o.direct_io = line.get<bool>("direct-io");
  o.max_connections = servers::connection_limit(line.get<unsigned>("max-connections"));
  const unsigned threads = line.get<unsigned>("threads");
  if (o.workers == 0 || o.workers > 256 || threads == 0 || threads > 64)
    throw usage_error(errc::invalid_request, "--workers is 1 to 256, --threads is 1 to 64");
  if (o.memory < 4 << 20 || o.memory > std::uint64_t{1} << 40)
    throw usage_error(errc::invalid_request, "--memory is 4 MiB to 1 TiB");

  servers::server_loop loop(threads);
  std::unique_ptr<iod::iod_home> home;
  if (line.has("backend"))
    home = iod::open_gateway(line.get<std::string>("backend"), o.node, [&](const std::string& why) { loop.fail(why); });
  else
    home = std::make_unique<iod::iod_folder>(o.folder, o.node);
  o.epoch = home->epoch();
  iod::iod_server server(loop.context(), o, home->node());
  if (const auto* key = home->capability_key()) server.set_store(home->store_uuid(), *key);
  wire::revocations revoked = home->revoked();
  server.set_revoked(revoked);
  server.start();
  servers::metrics_endpoint metrics(loop.context(), [&] { return iod::metrics_of(server.statistics()); });
  metrics.start(line.metrics_addresses());

  servers::registration_options r;
  r.metadata_server = line.get<std::string>("metad");
  r.key = o.key;
  r.frames = o.frames;
  r.node = o.node;
  r.node_uuid = home->uuid();
  r.store_uuid = home->store_uuid();
  r.addresses =
      servers::announced(line.has("announce") ? line.get<strings>("announce") : strings{}, server.addresses());
  r.incarnation = server.incarnation();
  r.name = "ooc-iod " + std::to_string(::getpid());
  servers::registration_events events;
  events.registered = [&](const servers::registered_store& store) {
    home->join(store.uuid, store.capability_key, store.nodes);
    server.set_store(store.uuid, store.capability_key);
  };
  events.revoked = [&](const wire::revocations& told) {
    if (!revoked.add(told)) return;  // nothing is taken back
    server.set_revoked(revoked);
    try {
      home->remember(revoked);
    } catch (const error& e) {  // a full disk is no reason to serve nobody
      spdlog::error("{}; which keys are revoked is known until this server ends", e.what());
    }
  };
  events.reachable = [&](bool yes) { server.capabilities().set_metadata_reachable(yes); };
  events.refused = [](const std::string&) {};  // the registration has logged it
  events.space = [&] {
    const auto s = server.statistics();
    return servers::disk_space{s.disk_bytes, s.disk_free};
  };
  servers::registration registration(r, events);
  registration.start();
  // Last: who waits for it (`ooc start`) knows then that it has not failed.
  for (const std::string& a : server.addresses()) spdlog::info("listening on {}", a);
  loop.run([&] {
    metrics.stop();
    server.stop();
  });
  registration.stop();
  spdlog::info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ooc::servers::run_main("ooc-iod", [&] { return run(argc, argv); });
}
