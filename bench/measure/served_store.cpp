#include "measure/served_store.hpp"

#include <cstdio>

#include "cluster/local_cluster.hpp"
#include "oocarray/error.hpp"

namespace bench {

using namespace std::chrono_literals;

served_store::served_store(std::filesystem::path dir, unsigned nodes) : dir_(std::move(dir)) {
  ooc::cluster::cluster_settings s;
  s.nodes = nodes;
  s.port = 0;
  url_ = ooc::cluster::local_cluster(dir_).up(s, 30s).url;
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

}  // namespace bench
