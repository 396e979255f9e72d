#include "metad/metad_server.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "daemon/admission.hpp"
#include "daemon/clock.hpp"
#include "metad/metad_metrics.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/wire/metadata_calls.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::metad {

namespace asio = boost::asio;
namespace pb = wire::pb;
using namespace std::chrono_literals;

metad_server::metad_server(asio::io_context& context, metad_options options)
    : context_(context),
      options_(std::move(options)),
      incarnation_(wire::random_incarnation()),
      started_ns_(servers::unix_time_ns()),
      folder_(options_.elsewhere ? metadata_folder(options_.folder, *options_.elsewhere)
                                 : metadata_folder(options_.folder, options_.nodes, options_.owner)),
      revoked_(options_.revoked, folder_.revoked()),
      clients_(options_.grace),
      calls_(
          folder_, options_.capability_life, options_.grace, [this](const client_key& c) { return clients_.alive(c); },
          [this](const client_key& c) { return clients_.described(c); }, options_.clients_end),
      nodes_(calls_.database(), folder_.nodes(), folder_.has_gateways()),
      ticks_(context),
      listeners_(context, [this](std::shared_ptr<wire::stream_socket> s) { accepted(std::move(s)); }),
      places_(std::make_shared<servers::fair_share>(options_.max_connections, 1)),
      memory_(std::make_shared<servers::fair_share>(options_.memory, 64 << 10)) {
  if (options_.forget_node) {
    nodes_.forget(*options_.forget_node);
    spdlog::warn("node {}: forgotten, another folder may register", *options_.forget_node);
  }
  for (const std::uint32_t node : options_.missing_nodes) nodes_.set_missing(node);
}

void metad_server::start() {
  // Not earlier: in RADOS shutting out the server before may have taken a while.
  for (const client_key& c : calls_.remembered()) clients_.expect(c);
  listeners_.start(options_.listen, options_.key != nullptr);
  asio::co_spawn(context_, watch(), asio::detached);
}

void metad_server::stop() {
  stopping_ = true;
  listeners_.stop();
  for (const auto& s : sessions_) s->close();
  ticks_.cancel();
}

wire::server_info metad_server::who_am_i() const {
  wire::server_info me;
  me.role = wire::server_role::metadata;
  me.incarnation = incarnation_;
  me.store_uuid = folder_.store_uuid();
  me.frames = options_.frames;
  me.epoch = folder_.epoch();
  return me;
}

void metad_server::accepted(std::shared_ptr<wire::stream_socket> socket) {
  const auto s = std::make_shared<session>(*this, socket, ++last_session_);
  if (stopping_) return;
  const auto room = servers::admit(sessions_, s, options_.max_connections, *places_);
  if (room.out) room.out->close();
  if (!room.in) return;
  asio::co_spawn(socket->get_executor(), serve(s), asio::detached);
}

asio::awaitable<void> metad_server::serve(std::shared_ptr<session> s) {
  servers::log_end(*s, co_await s->run());
  std::erase(sessions_, s);
  if (!s->welcomed()) co_return;
  if (s->client().role == wire::peer_role::client) clients_.disconnected(s->client().client);
  nodes_.lost(s->number());
}

servers::fair_share::claim metad_server::welcome(session& s) {
  const wire::hello_info& c = s.client();
  spdlog::debug("{} ({}): connected as user {}", s.peer(), c.name, c.who.uid);
  if (c.role != wire::peer_role::client) return servers::welcome_to(*places_, s.number_in_shares());
  // A client uses its newest connection only: what it sent on older ones is not run any more.
  for (const auto& other : sessions_) {
    if (other.get() == &s || !other->welcomed() || other->client().client != c.client) continue;
    if (other->client().connection >= c.connection)
      throw wire::connection_error({EEXIST, std::generic_category()}, "this client has a newer connection");
    other->close();
  }
  auto place = servers::welcome_to(*places_, s.number_in_shares());
  clients_.connected(c.client, c.name);
  return place;
}

void metad_server::take_turn(storage::client_number who, std::function<void(bool)> go) {
  // Nobody else waits, and nobody is being served.
  if (!turning_) {
    turning_ = true;
    go(true);
  } else {
    turns_.add(who, {}, 0, std::move(go));
  }
  // Others' frames come in between, and what follows on this one's connection after them.
  if (!posted_) {
    posted_ = true;
    asio::post(context_, [this] { next_turn(); });
  }
}

void metad_server::next_turn() {
  posted_ = false;
  auto go = turns_.next();
  turning_ = go.has_value();
  if (!go) return;
  posted_ = true;
  (*go)(true);
  asio::post(context_, [this] { next_turn(); });
}

bool metad_server::holds_something(const session& s) const {
  return s.client().role != wire::peer_role::client || calls_.holds_something(s.client().client);
}

std::string metad_server::answer(session& s, const waiting_frame& f) {
  try {
    switch (f.kind) {
      case wire::frame_kind::metadata: return call(s, f);
      case wire::frame_kind::enlist: return enlist(s, f.body);
      case wire::frame_kind::cluster: return cluster(s);
      case wire::frame_kind::stats: return statistics().SerializeAsString();
      case wire::frame_kind::ping:
        // Else a client would stay in touch with this server, and be taken for lost by the next one.
        if (options_.in_place && !options_.in_place()) s.close();
        return {};
      default:
        throw usage_error({ENOSYS, std::generic_category()},
                          "a metadata server does not answer a " + wire::kind_name(f.kind));
    }
  } catch (const std::exception&) {
    ++failures_;
    throw;
  }
}

std::string metad_server::call(session& s, const waiting_frame& f) {
  if (s.client().role != wire::peer_role::client)
    throw usage_error({EACCES, std::generic_category()}, "only clients call the metadata service");
  if (f.refused) std::rethrow_exception(f.refused);
  const wire::sent_call& c = *f.call;
  if (std::holds_alternative<wire::goodbye>(c.what)) {
    clients_.goodbye(s.client().client);
    try {
      calls_.end(s.client().client);
    } catch (const std::exception&) {
      clients_.stay(s.client().client);
      throw;
    }
    return {};
  }
  clients_.stay(s.client().client);  // who asks on has not gone, whatever it has said
  return wire::encode(c.what, calls_.answer({s.client().client, s.client().who, s.holder()}, c));
}

std::string metad_server::enlist(session& s, std::string_view body) {
  if (s.client().role != wire::peer_role::io_server)
    throw usage_error({EACCES, std::generic_category()}, "only I/O servers register");
  const auto m = wire::parse_body<pb::Enlist>(body);
  node_registration r;
  r.node = m.node();
  r.uuid = m.node_uuid();
  r.addresses.assign(m.addresses().begin(), m.addresses().end());
  r.incarnation = m.incarnation();
  r.disk_bytes = m.disk_bytes();
  r.disk_free = m.disk_free();
  try {
    if (nodes_.enlist(r, s.number()))
      spdlog::info("node {} registered from {}: {}, folder {}", r.node, s.peer(), r.addresses[0], r.uuid);
  } catch (const error& e) {
    spdlog::warn("{} ({}): registration refused: {}", s.peer(), s.client().name, e.what());
    throw;
  }
  pb::Enlisted reply;
  reply.set_store_uuid(folder_.store_uuid());
  reply.set_capability_key(calls_.public_key().data(), calls_.public_key().size());
  reply.set_nodes(folder_.nodes());
  if (const auto& list = revoked())
    for (const auto& [uid, until] : list->by_user()) {
      pb::Revocation& one = *reply.add_revoked();
      one.set_uid(uid);
      one.set_until(until);
    }
  return reply.SerializeAsString();
}

std::string metad_server::cluster(const session& asker) const {
  pb::Cluster reply;
  reply.set_asker(asker.number());
  reply.set_store_uuid(folder_.store_uuid());
  reply.set_gateways(folder_.has_gateways());
  const storage::node_list retired = storage::nodes_in(calls_.database(), storage::retired_key);
  for (const node_table::state& s : nodes_.states()) {
    pb::NodeState& n = *reply.add_nodes();
    n.set_retired(std::ranges::find(retired, s.known.node) != retired.end());
    n.set_node(s.known.node);
    n.set_node_uuid(s.known.uuid);
    for (const std::string& a : s.known.addresses) n.add_addresses(a);
    n.set_up(s.up);
    n.set_incarnation(s.known.incarnation);
    n.set_disk_bytes(s.known.disk_bytes);
    n.set_disk_free(s.known.disk_free);
    n.set_refused(s.refused);
  }
  return reply.SerializeAsString();
}

wire::pb::MetadataStatistics metad_server::statistics() const {
  pb::MetadataStatistics reply;
  reply.set_version(OOCARRAY_VERSION);
  reply.set_started_ns(started_ns_);
  reply.set_calls(calls_.calls());
  reply.set_failures(failures_);
  reply.set_connections(servers::open_sessions(sessions_));
  reply.set_clients(clients_.size());
  reply.set_leases(calls_.leases().size());
  for (const auto& [op, calls] : calls_.calls_by_operation()) {
    pb::OperationCount& o = *reply.add_operations();
    o.set_op(static_cast<pb::Operation>(op));
    o.set_calls(calls);
  }
  return reply;
}

std::string metad_server::metrics() const {
  std::vector<node_table::state> in_use = nodes_.states();
  const storage::node_list retired = storage::nodes_in(calls_.database(), storage::retired_key);
  std::erase_if(in_use,
                [&](const node_table::state& s) { return std::ranges::find(retired, s.known.node) != retired.end(); });
  return metrics_of(statistics(), in_use);
}

void metad_server::drop_revoked() {
  revoked_.look();
  if (!revoked()) return;
  for (const auto& s : std::vector(sessions_))
    if (s->welcomed() && !s->closed() && revoked()->cover(s->identity())) {
      spdlog::warn("{} ({}): dropped, its key has been revoked", s->peer(), s->client().name);
      s->close();
    }
}

asio::awaitable<void> metad_server::watch() {
  boost::system::error_code ec;
  while (!stopping_) {
    ticks_.expires_after(500ms);
    co_await ticks_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    const auto now = std::chrono::steady_clock::now();
    for (const auto& s : std::vector(sessions_))
      if (const std::string why = s->fault(now); !why.empty()) {
        spdlog::warn("{} ({}): dropped, it {}", s->peer(), s->welcomed() ? s->client().name : "not welcomed", why);
        s->close();
      }
    drop_revoked();
    if (const auto gone = clients_.take_expired(); !gone.empty()) try {
        calls_.lose(gone);
      } catch (const error& e) {
        spdlog::error("ending what lost clients held: {}; tried again", e.what());
        for (const client_key& c : gone) clients_.expect(c);
      }
  }
}

}  // namespace ooc::metad
