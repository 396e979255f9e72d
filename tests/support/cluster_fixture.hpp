// A served store in a temporary folder: the programs ooc-metad and, where asked for, ooc-iod, on
// loopback ports that the system chose.  With "rados:POOL" in $OOC_TEST_GATEWAYS it is in RADOS, and the I/O servers
// are its gateways.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "storage/client/remote_metadata.hpp"
#include "storage/wire/access_key.hpp"
#include "support/server_process.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

struct cluster_options {
  std::uint32_t nodes = 1;       ///< of the store
  std::uint32_t io_servers = 0;  ///< that are started
  bool keyed = false;
  std::vector<std::string> metad{};  ///< further arguments
  std::vector<std::string> iod{};
};

class cluster {
 public:
  explicit cluster(cluster_options o = {}) : options_(std::move(o)) {
    if (options_.keyed) wire::access_key::random()->write(key_file());
    std::vector<std::string> a{"--folder", (folder_ / "meta").string(), "--log-level", "debug"};
    const std::string nodes = std::to_string(options_.nodes);
    if (const char* const pool = std::getenv("OOC_TEST_GATEWAYS")) {
      rados_ = std::string(pool) + "/" + folder_.path().filename().string();
      a.insert(a.end(), {"--database", rados_, "--gateways", nodes});
    } else {
      a.insert(a.end(), {"--nodes", nodes});
    }
    if (options_.keyed) a.insert(a.end(), {"--key", key_file()});
    a.insert(a.end(), options_.metad.begin(), options_.metad.end());
    metad_ = std::make_unique<server_process>(OOC_METAD, a, folder_ / "metad.log");
    for (std::uint32_t i = 0; i < options_.io_servers; ++i) start_iod(i);
  }

  server_process& metad() { return *metad_; }
  server_process& iod(std::uint32_t i) { return *iods_.at(i); }
  std::string url() const { return "ooc://" + metad_->address(); }
  std::string key_file() const { return (folder_ / "key").string(); }
  wire::key_ptr key() const { return options_.keyed ? wire::access_key::read(key_file()) : nullptr; }
  const temporary_folder& folder() const { return folder_; }

  storage::remote_metadata_options client_options(storage::credentials who = {::geteuid(), ::getegid()},
                                                  std::chrono::milliseconds deadline = std::chrono::seconds(20)) const {
    storage::remote_metadata_options o;
    o.address = metad_->address();
    o.client.id = wire::random_client_id();
    o.client.who = who;
    o.client.key = key();
    o.client.name = "test";
    o.deadline = deadline;
    return o;
  }
  std::shared_ptr<storage::remote_metadata> client(
      storage::credentials who = {::geteuid(), ::getegid()},
      std::chrono::milliseconds deadline = std::chrono::seconds(20)) const {
    return std::make_shared<storage::remote_metadata>(client_options(who, deadline));
  }

 private:
  void start_iod(std::uint32_t i) {
#ifdef OOC_IOD
    std::vector<std::string> a{rados_.empty() ? "--folder" : "--backend",
                               rados_.empty() ? (folder_ / ("node" + std::to_string(i))).string() : rados_,
                               "--node",
                               std::to_string(i),
                               "--metad",
                               metad_->address(),
                               "--log-level",
                               "debug"};
    if (options_.keyed) a.insert(a.end(), {"--key", key_file()});
    a.insert(a.end(), options_.iod.begin(), options_.iod.end());
    iods_.push_back(std::make_unique<server_process>(OOC_IOD, a, folder_ / ("iod" + std::to_string(i) + ".log")));
#else
    throw std::logic_error("this test was built without I/O servers: " + std::to_string(i));
#endif
  }

  cluster_options options_;
  temporary_folder folder_;
  std::string rados_;  // the store's URL there
  std::unique_ptr<server_process> metad_;
  std::vector<std::unique_ptr<server_process>> iods_;
};

}  // namespace ooc::testing
