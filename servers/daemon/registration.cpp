#include "daemon/registration.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "storage/wire/metadata_messages.hpp"

namespace ooc::servers {

namespace pb = wire::pb;
using namespace std::chrono_literals;

namespace {

constexpr auto sign_of_life = 2s;
constexpr auto patience = 5s;  // with an answer
constexpr auto first_pause = 100ms;
constexpr auto longest_pause = 5s;

}  // namespace

registration::registration(registration_options options, registration_events events)
    : options_(std::move(options)),
      events_(std::move(events)),
      connection_(options_.metadata_server),
      store_uuid_(options_.store_uuid),
      wait_(first_pause) {}

void registration::set_reachable(bool yes) {
  if (std::exchange(reachable_, yes) != yes) events_.reachable(yes);
}

/// One step: registers where there is no connection, and sends a sign of life; when the next is due.
ticker::clock::time_point registration::step() {
  try {
    if (!connected_) connect();
    send_sign_of_life();
    return ticker::clock::now() + sign_of_life;
  } catch (const error& e) {
    connection_.close();
    connected_ = false;
    if (std::exchange(reachable_, false)) {
      events_.reachable(false);
      wait_ = first_pause;
    }
    const bool refused =
        dynamic_cast<const usage_error*>(&e) != nullptr || dynamic_cast<const wire::connection_refused*>(&e) != nullptr;
    if (refused) events_.refused(e.what());
    // Said once, however often it is tried.
    if (std::exchange(last_, e.what()) != e.what())
      spdlog::log(refused ? spdlog::level::err : spdlog::level::warn, "metadata server {}: {}; tried again",
                  options_.metadata_server, e.what());
    wait_ = std::min<std::chrono::milliseconds>(2 * wait_, longest_pause);
    return ticker::clock::now() + wait_;
  }
}

void registration::connect() {
  wire::hello_info me;
  me.client = wire::random_client_id();
  me.connection = ++connections_;
  me.role = wire::peer_role::io_server;
  me.wanted = wire::server_role::metadata;
  me.who = {::geteuid(), ::getegid()};
  me.store_uuid = store_uuid_;
  me.name = options_.name;
  me.frames = options_.frames;
  connection_.connect(me, options_.key, std::chrono::steady_clock::now() + patience);
}

/// The first on a connection registers the server.
void registration::send_sign_of_life() {
  pb::Enlist m;
  m.set_node(options_.node);
  m.set_node_uuid(options_.node_uuid);
  for (const std::string& a : options_.addresses) m.add_addresses(a);
  m.set_incarnation(options_.incarnation);
  const disk_space s = events_.space();
  m.set_disk_bytes(s.bytes);
  m.set_disk_free(s.free);
  const auto answer =
      connection_.ask(wire::frame_kind::enlist, m.SerializeAsString(), std::chrono::steady_clock::now() + patience);
  if (answer.header.has(wire::frame_header::failed)) wire::throw_failure(answer.body);
  const auto store = wire::parse_body<pb::Enlisted>(answer.body);
  wire::revocations revoked;
  for (const pb::Revocation& one : store.revoked()) revoked.add(one.uid(), one.until());
  if (revoked_ != revoked) {
    events_.revoked(revoked);
    revoked_ = std::move(revoked);
  }
  if (std::exchange(connected_, true)) return;
  registered_store r;
  r.uuid = store.store_uuid();
  r.nodes = store.nodes();
  if (store.capability_key().size() != r.capability_key.size())
    throw io_error({EPROTO, std::generic_category()}, "the metadata server's answer has no key for capabilities");
  std::copy(store.capability_key().begin(), store.capability_key().end(), r.capability_key.begin());
  events_.registered(r);
  store_uuid_ = r.uuid;
  spdlog::info("registered as node {} of store {} with metadata server {}", options_.node, r.uuid,
               options_.metadata_server);
  set_reachable(true);
}

}  // namespace ooc::servers
