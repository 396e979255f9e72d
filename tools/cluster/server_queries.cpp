#include "cluster/server_queries.hpp"

#include <algorithm>
#include <future>
#include <memory>

#include "oocarray/error.hpp"
#include "storage/client/metadata_connection.hpp"
#include "storage/store/rados_store.hpp"
#include "storage/store/remote_store.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::cluster {

using std::chrono::steady_clock;
using storage::metadata_connection;
using wire::frame_kind;

namespace {

steady_clock::time_point until(const asker& who) { return steady_clock::now() + who.patience; }

wire::hello_info hello(const asker& who, wire::server_role wanted, const std::string& uuid) {
  wire::hello_info me;
  me.client = who.client.id;
  me.connection = 1;
  me.wanted = wanted;
  me.who = who.client.who;
  me.store_uuid = uuid;
  me.name = who.client.name;
  me.frames = who.client.frames;
  return me;
}

/// The body of a good answer; a failure of the server is thrown.
std::string_view good(const metadata_connection::answer& a) {
  if (a.header.has(wire::frame_header::failed)) throw_if(wire::decode_failure(a.body));
  return a.body;
}

/// A connection of a client of its own: it ends no other of this process.
std::unique_ptr<metadata_connection> connected(const std::string& address, wire::server_role wanted,
                                               const std::string& uuid, asker who) {
  who.client.id = wire::random_client_id();
  auto c = std::make_unique<metadata_connection>(address);
  c->connect(hello(who, wanted, uuid), who.client.key, until(who));
  return c;
}

/// The same to I/O server `node`.
std::unique_ptr<metadata_connection> connected_to_node(const std::string& address, std::uint32_t node,
                                                       const std::string& uuid, const asker& who) {
  auto c = connected(address, wire::server_role::io, uuid, who);
  if (c->server().node != node)
    throw io_error(std::make_error_code(std::errc::address_not_available),
                   "node " + std::to_string(c->server().node) + " of the store answers there");
  return c;
}

/// Pings `p` on the connection that `connect` makes, then asks `version` for what the server says of
/// itself.
template <class Connect, class Version>
pulse ping(pulse p, const asker& who, Connect&& connect, Version&& version) {
  try {
    const std::unique_ptr<metadata_connection> connection = connect();
    metadata_connection& c = *connection;
    for (int i = 0; i < 3; ++i) {
      const auto start = steady_clock::now();
      good(c.ask(frame_kind::ping, {}, until(who)));
      const std::chrono::duration<double, std::micro> us = steady_clock::now() - start;
      p.round_trip_us = i == 0 ? us.count() : std::min(us.count(), p.round_trip_us);
    }
    p.incarnation = c.server().incarnation;
    p.version = version(c);
    p.up = true;
  } catch (const error& e) {
    p.why = e.what();
  }
  return p;
}

wire::node_statistics statistics_of(metadata_connection& c, const asker& who) {
  return wire::decode_statistics(good(c.ask(frame_kind::stats, {}, until(who))));
}

storage::remote_metadata metadata_client(const std::string& address, const asker& who) {
  storage::remote_metadata_options o;
  o.address = address;
  o.client = who.client;
  o.client.id = wire::random_client_id();
  o.deadline = who.patience;
  return storage::remote_metadata(o);
}

}  // namespace

asker asker::of(const std::string& url, const std::string& key_file) {
  const storage::store_url parsed = storage::parse_store_url(url);
  return with_key(key_file, parsed.scheme != "ooc" || storage::options_of(parsed).encrypt);
}

asker asker::with_key(const std::string& key_file, bool encrypt) {
  store_options o;
  o.key = key_file;
  asker a;
  a.client = storage::this_client(o);
  if (!encrypt) a.client.frames = wire::encryption::off;
  return a;
}

std::string metadata_address(const std::string& url) {
  const storage::store_url parsed = storage::parse_store_url(url);
  if (parsed.scheme == "rados") return storage::rados_server_address(parsed);
  if (parsed.scheme != "ooc")
    throw usage_error(errc::not_a_store, "store '" + url + "' has no servers to ask; write ooc://HOST:PORT");
  return storage::server_address_of(parsed);
}

storage::cluster_info ask_cluster(const std::string& metadata, const asker& who) {
  return metadata_client(metadata, who).cluster();
}

pulse ping_metadata(const std::string& metadata, const asker& who) {
  pulse p;
  p.name = "metad";
  p.address = metadata;
  return ping(
      std::move(p), who, [&] { return connected(metadata, wire::server_role::metadata, {}, who); },
      [&](metadata_connection&) { return metadata_client(metadata, who).statistics().version; });
}

pulse ping_node(std::uint32_t node, const std::string& address, const std::string& store_uuid, const asker& who) {
  pulse p;
  p.name = "iod " + std::to_string(node);
  p.address = address;
  return ping(
      std::move(p), who, [&] { return connected_to_node(address, node, store_uuid, who); },
      [&](metadata_connection& c) { return statistics_of(c, who).version; });
}

namespace {

/// Without Unix sockets that lead nowhere from here, to servers that answer elsewhere: those sockets
/// are for the programs of their own hosts.
std::vector<pulse> without_others_sockets(const std::vector<pulse>& all) {
  std::vector<pulse> left;
  for (const pulse& p : all) {
    const auto answers = [&](const pulse& other) { return other.up && other.name == p.name; };
    if (p.up || !p.address.starts_with("unix:") || std::ranges::none_of(all, answers)) left.push_back(p);
  }
  return left;
}

}  // namespace

std::vector<pulse> ping_all(const std::string& metadata, const asker& who) {
  std::vector<pulse> all{ping_metadata(metadata, who)};
  if (!all[0].up) return all;
  const storage::cluster_info cluster = ask_cluster(metadata, who);
  std::vector<std::future<pulse>> asked;
  std::uint32_t index = 0;
  for (const storage::node_info& n : cluster.nodes) {
    const std::uint32_t node = index++;
    if (n.retired) continue;
    if (!n.refused.empty()) {
      all.push_back({"iod " + std::to_string(node),
                     n.addresses.empty() ? "" : n.addresses.front(),
                     false,
                     0,
                     0,
                     {},
                     n.refused,
                     true});
      continue;
    }
    for (const std::string& address : n.addresses)
      asked.push_back(std::async(std::launch::async, [&cluster, &who, node, address] {
        return ping_node(node, address, cluster.store_uuid, who);
      }));
    if (n.addresses.empty())
      asked.push_back(std::async(std::launch::deferred, [node] {
        pulse p;
        p.name = "iod " + std::to_string(node);
        p.why = "it has never registered with the metadata server";
        return p;
      }));
  }
  for (auto& one : asked) all.push_back(one.get());
  return without_others_sockets(all);
}

namespace {

double microseconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(steady_clock::now() - start).count();
}

}  // namespace

node_answer ask_node(std::uint32_t index, const storage::node_info& node, const std::string& store_uuid,
                     const asker& who) {
  failure why{{EHOSTUNREACH, std::generic_category()}, "it has never registered with the metadata server"};
  if (node.retired) throw_if({why.code, "is retired"});
  for (const std::string& address : node.addresses) {
    try {
      const auto c = connected_to_node(address, index, store_uuid, who);
      const auto start = steady_clock::now();
      node_answer a{statistics_of(*c, who), 0};
      a.round_trip_us = microseconds_since(start);
      return a;
    } catch (const error& e) {
      why = {e.code(), address + ": " + e.what()};
    }
  }
  throw_if(why);
  return {};
}

wire::node_statistics ask_statistics(std::uint32_t index, const storage::node_info& node, const std::string& store_uuid,
                                     const asker& who) {
  return ask_node(index, node, store_uuid, who).said;
}

metadata_answer ask_metadata(const std::string& metadata, const asker& who) {
  storage::remote_metadata client = metadata_client(metadata, who);
  metadata_answer a;
  a.cluster = client.cluster();
  const auto start = steady_clock::now();
  a.said = client.statistics();
  a.round_trip_us = microseconds_since(start);
  return a;
}

}  // namespace ooc::cluster
