#include "storage/store/remote_store.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/chunked/packed_file.hpp"
#include "storage/client/io_threads.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/client/remote_node.hpp"
#include "storage/service/removals.hpp"
#include "storage/store/absent_node.hpp"
#include "storage/store/gateways_node.hpp"
#include "storage/wire/address.hpp"

namespace ooc::storage {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds usual_deadline = 30s;

constexpr auto lookup_patience = 1s;

address_lookup lookup_of(std::shared_ptr<remote_metadata> metadata, std::uint32_t node) {
  return [metadata = std::move(metadata), node] {
    const node_info now = metadata->cluster(lookup_patience).nodes.at(node);
    if (!now.refused.empty()) throw server_refused({ENXIO, std::generic_category()}, now.refused);
    return now.up ? now.addresses : std::vector<std::string>();
  };
}

}  // namespace

std::string server_address_of(const store_url& url) {
  const std::string whole = url.scheme + ":" + url.rest;
  (void)options_of(url);
  std::string_view rest = std::string_view(url.rest).substr(0, url.rest.find('?'));
  try {
    if (rest.starts_with("unix:")) return wire::parse_address(rest).text();
    if (!rest.starts_with("//")) refuse(errc::not_a_store, "store", whole, "write ooc://HOST[:PORT]");
    rest.remove_prefix(2);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.empty() || rest.find_first_of("/@?#") != rest.npos)
      refuse(errc::not_a_store, "store", whole,
             "write ooc://HOST[:PORT], with nothing but ?deadline=10s or ?encrypt=off after it");
    return wire::parse_address(rest, "7420").text();
  } catch (const usage_error& e) {
    if (e.code() == errc::not_a_store) throw;
    refuse(errc::not_a_store, "store", whole, e.what());
  }
}

client_identity this_client(const store_options& options) {
  client_identity me;
  me.id = wire::random_client_id();
  me.who = {::geteuid(), ::getegid()};
  me.key = wire::find_key(options.key);
  // A user's key says for whom: the user may have another number on this host.
  if (me.key && !me.key->of_cluster()) {
    const wire::key_user& user = *me.key->holder().user;
    me.who = {user.uid, user.in_group(me.who.gid) ? me.who.gid : user.groups.front()};
  }
  me.name = std::string(::program_invocation_short_name) + " " + std::to_string(::getpid());
  return me;
}

std::shared_ptr<store_core> open_remote_store(const store_url& url, const store_options& options) {
  const std::chrono::milliseconds deadline =
      deadline_of(url, options_of(url).deadline, options.deadline, usual_deadline);
  remote_metadata_options m;
  m.address = server_address_of(url);
  m.client = this_client(options);
  if (!options_of(url).encrypt) m.client.frames = wire::encryption::off;
  m.deadline = deadline;
  const std::string name = url.scheme + ":" + url.rest;
  auto metadata = std::make_shared<remote_metadata>(m);
  const cluster_info info = metadata->cluster();

  const auto threads = std::make_shared<io_threads>();
  const auto nodes_from = [=](const cluster_info& now, std::size_t first) {
    striped_file::nodes nodes;
    for (std::size_t i = first; i < now.nodes.size(); ++i) {
      if (now.nodes[i].retired) {
        nodes.push_back(make_retired_node("node " + std::to_string(i)));
        continue;
      }
      remote_node_options n;
      n.index = static_cast<std::uint32_t>(i);
      if (now.nodes[i].up) n.addresses = now.nodes[i].addresses;
      n.lookup = lookup_of(metadata, n.index);
      n.store_uuid = now.store_uuid;
      n.client = m.client;
      n.deadline = deadline;
      n.threads = threads;
      nodes.push_back(open_remote_node(std::move(n)));
    }
    return nodes;
  };
  const bool complete = std::ranges::all_of(info.nodes, [](const node_info& n) { return n.up || n.retired; });
  if (info.gateways && info.nodes.empty())
    throw io_error({EPROTO, std::generic_category()}, "store '" + name + "': its metadata server names no gateway");
  const striped_file::nodes nodes = nodes_from(info, 0);
  auto core =
      info.gateways
          ? std::make_shared<store_core>(name, info.store_uuid, metadata,
                                         striped_file::nodes{make_gateways_node(nodes)}, info.asker, unpacked_node)
          : std::make_shared<store_core>(name, info.store_uuid, metadata, nodes, info.asker, unpacked_node,
                                         [=](std::size_t known) { return nodes_from(metadata->cluster(), known); });
  // Stripe objects that were left behind can wait for a node that is not there; the caller that opens the store
  // should not.
  if (complete) sweep(*core);
  return core;
}

}  // namespace ooc::storage
