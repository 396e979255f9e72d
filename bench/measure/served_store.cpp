#include "measure/served_store.hpp"

#include <signal.h>

#include <cstdio>

#include "cluster/background_server.hpp"
#include "cluster/local_cluster.hpp"
#include "oocarray/error.hpp"

namespace bench {

using namespace std::chrono_literals;

served_store::served_store(std::filesystem::path dir, unsigned nodes) : dir_(std::move(dir)) {
  ooc::cluster::cluster_settings s;
  s.nodes = nodes;
  s.port = 0;
  url_ = ooc::cluster::local_cluster(dir_).up(s, 60s).url;
}

served_store::served_store(std::filesystem::path dir, unsigned nodes, const std::string& key, bool encrypt,
                           const std::string& address)
    : dir_(std::move(dir)) {
  ooc::cluster::cluster_settings s;
  s.nodes = nodes;
  s.port = 0;
  s.addresses = {address};
  s.key = key;
  s.encrypt = encrypt;
  url_ = ooc::cluster::local_cluster(dir_).up(s, 30s).url;
}

served_store::~served_store() {
  try {
    ooc::cluster::local_cluster(dir_).down(30s);
  } catch (const ooc::error& e) {
    std::fprintf(stderr, "oocbench: %s\n", e.what());
  }
}

int served_store::pid(const std::string& server) const {
  return ooc::cluster::background_server(dir_, server).running().value_or(0);
}

void served_store::restart_metadata() {
  ooc::cluster::background_server metad(dir_, "metad");
  ::kill(pid("metad"), SIGKILL);
  metad.wait_stopped(std::chrono::steady_clock::now() + 10s);
  ooc::cluster::local_cluster c(dir_);
  (void)c.up(c.recorded().value(), 60s);
}

}  // namespace bench
