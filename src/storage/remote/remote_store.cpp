#include "storage/remote/remote_store.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "storage/remote/remote_node.hpp"

namespace ooc::storage {

using namespace std::chrono_literals;

namespace {

void check(const store_options& o) {
  if (o.deadline < 100ms || o.deadline > 24h)
    throw usage_error(errc::invalid_request, "store_options::deadline is " +
                                                 std::to_string(o.deadline.count()) +
                                                 " ms; give 100 ms to 24 h");
}

/// "nodes 1, 3" as far as they are not up; empty: all are.
std::string missing(const cluster_info& info) {
  std::string list;
  for (std::size_t i = 0; i < info.nodes.size(); ++i)
    if (!info.nodes[i].up) list += (list.empty() ? "" : ", ") + std::to_string(i);
  return list.empty() ? list : (list.find(',') == list.npos ? "node " : "nodes ") + list;
}

cluster_info whole_cluster(remote_metadata& metadata, const std::string& url,
                           std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (auto pause = 20ms;; pause = std::min(2 * pause, 500ms)) {
    cluster_info info = metadata.cluster();
    const std::string absent = missing(info);
    if (absent.empty()) return info;
    if (std::chrono::steady_clock::now() + pause > deadline)
      throw io_error({ETIMEDOUT, std::generic_category()},
                     "store '" + url + "': the I/O server of " + absent +
                         " has not been there for " + std::to_string(patience / 1ms) +
                         " ms; start it (ooc-iod), or see its log for why it cannot register");
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

client_identity this_client(const store_options& options) {
  client_identity me;
  me.id = wire::random_client_id();
  me.who = {::geteuid(), ::getegid()};
  me.key = wire::find_cluster_key(options.key);
  me.name = std::string(::program_invocation_short_name) + " " + std::to_string(::getpid());
  return me;
}

std::shared_ptr<store_core> open_remote_store(const store_url& url, const store_options& options) {
  check(options);
  remote_metadata_options m;
  m.address = server_address_of(url);
  m.client = this_client(options);
  m.deadline = options.deadline;
  const std::string name = url.scheme + ":" + url.rest;
  auto metadata = std::make_shared<remote_metadata>(m);
  const cluster_info info = whole_cluster(*metadata, name, options.deadline);

  striped_file::nodes nodes;
  for (std::size_t i = 0; i < info.nodes.size(); ++i) {
    remote_node_options n;
    n.index = static_cast<std::uint32_t>(i);
    n.addresses = info.nodes[i].addresses;
    n.store_uuid = info.store_uuid;
    n.client = m.client;
    n.deadline = options.deadline;
    nodes.push_back(open_remote_node(std::move(n)));
  }
  auto core =
      std::make_shared<store_core>(name, info.store_uuid, std::move(metadata), std::move(nodes));
  core->sweep();
  return core;
}

}  // namespace ooc::storage
