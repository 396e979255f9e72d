#include "iod/iod_server.hpp"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <unordered_set>

#include "daemon/admission.hpp"
#include "daemon/clock.hpp"
#include "storage/node/local_node.hpp"

namespace ooc::iod {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// A quarter of the memory is for descriptions of requests, but enough for the largest one and for others
// beside it.
std::uint64_t for_descriptions(const iod_options& o) { return std::max<std::uint64_t>(o.memory / 4, 16 << 20); }
// Descriptions up to this size may be had from the reserve.
constexpr std::uint64_t small_description = 256 << 10;

storage::local_node_options node_options(const iod_options& o) {
  storage::local_node_options n;
  n.workers = o.workers;
  n.direct_io = o.direct_io;
  return n;
}

}  // namespace

iod_server::iod_server(asio::io_context& context, iod_options options, std::shared_ptr<storage::served_node> node)
    : context_(context),
      options_(std::move(options)),
      incarnation_(wire::random_incarnation()),
      started_ns_(servers::unix_time_ns()),
      node_(node ? std::move(node) : storage::open_local_node(options_.folder, node_options(options_))),
      descriptions_(std::make_shared<fair_share>(for_descriptions(options_), small_description)),
      buffers_(std::make_shared<buffer_pool>(options_.memory - options_.memory / 4)),
      places_(std::make_shared<fair_share>(options_.max_connections, 1)),
      ticks_(context),
      listeners_(context, [this](std::shared_ptr<wire::stream_socket> s) { accepted(std::move(s)); }) {}

iod_server::~iod_server() {
  {
    unique_lock lock(mutex_);
    over_.wait(lock, [&]() OOC_REQUIRES(mutex_) { return sessions_.empty(); });
  }
  node_.reset();  // its threads use all the rest
}

void iod_server::start() {
  listeners_.start(options_.listen, options_.key != nullptr);
  asio::co_spawn(context_, watch(), asio::detached);
}

void iod_server::stop() {
  std::vector<std::shared_ptr<session>> all;
  {
    const lock_guard lock(mutex_);
    stopping_ = true;
    all = sessions_;
  }
  listeners_.stop();
  for (const auto& s : all) s->close();
  ticks_.cancel();
}

void iod_server::set_store(const std::string& uuid, const wire::capability_public_key& key) {
  node_->set_store(uuid);  // before anybody is let in
  capabilities_.set_store(uuid, key);
  const lock_guard lock(mutex_);
  store_uuid_ = uuid;
}

wire::server_info iod_server::who_am_i() const {
  wire::server_info me;
  me.role = wire::server_role::io;
  me.incarnation = incarnation_;
  me.node = options_.node;
  me.frames = options_.frames;
  me.epoch = options_.epoch;
  const lock_guard lock(mutex_);
  me.store_uuid = store_uuid_;
  return me;
}

void iod_server::accepted(std::shared_ptr<wire::stream_socket> socket) {
  const auto s = std::make_shared<session>(*this, socket, options_.transfer_window);
  servers::admitted<session> room;
  {
    const lock_guard lock(mutex_);
    if (!stopping_) room = servers::admit(sessions_, s, options_.max_connections, *places_);
  }
  if (room.out) room.out->close();
  if (!room.in) return;
  asio::co_spawn(socket->get_executor(), serve(s), asio::detached);
}

asio::awaitable<void> iod_server::serve(std::shared_ptr<session> s) {
  servers::log_end(*s, co_await s->run());
  s->when_over([this, s] {
    const lock_guard lock(mutex_);
    std::erase(sessions_, s);
    over_.notify_all();
  });
}

std::size_t iod_server::connections() const {
  const lock_guard lock(mutex_);
  return sessions_.size();
}

void iod_server::fence(const wire::client_id& client, const std::vector<std::uint64_t>& connections,
                       std::function<void()> done) {
  const std::unordered_set<std::uint64_t> named(connections.begin(), connections.end());
  std::vector<std::shared_ptr<session>> lost;
  {
    const lock_guard lock(mutex_);
    for (const auto& s : sessions_)
      if (s->welcomed() && s->client().client == client && named.contains(s->client().connection)) lost.push_back(s);
  }
  if (lost.empty()) return done();
  const auto missing = std::make_shared<std::atomic<std::size_t>>(lost.size());
  for (const auto& s : lost) {
    spdlog::info("{} ({}): fenced, its client has a new connection", s->peer(), s->client().name);
    s->close();
    s->when_over([missing, done] {
      if (missing->fetch_sub(1) == 1) done();
    });
  }
}

void iod_server::set_revoked(const wire::revocations& revoked) {
  {
    const lock_guard lock(mutex_);
    revoked_ = std::make_shared<const wire::revocations>(revoked);
  }
  drop_revoked();
}

wire::revocations_ptr iod_server::revoked() const {
  const lock_guard lock(mutex_);
  return revoked_;
}

void iod_server::drop_revoked() {
  std::vector<std::shared_ptr<session>> lost;
  {
    const lock_guard lock(mutex_);
    if (!revoked_ || revoked_->empty()) return;
    for (const auto& s : sessions_)
      if (s->welcomed() && !s->closed() && revoked_->cover(s->identity())) lost.push_back(s);
  }
  for (const auto& s : lost) {
    spdlog::warn("{} ({}): dropped, its key has been revoked", s->peer(), s->client().name);
    s->close();
  }
}

asio::awaitable<void> iod_server::watch() {
  boost::system::error_code ec;
  for (;;) {
    ticks_.expires_after(500ms);
    co_await ticks_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    std::vector<std::shared_ptr<session>> all;
    {
      const lock_guard lock(mutex_);
      if (stopping_) co_return;
      all = sessions_;
    }
    drop_revoked();  // also who was just being welcomed when they were told
    const bool hurry = buffers_->short_of_room() || descriptions_->short_of();
    for (const auto& s : all)
      if (const std::string why = s->look_after(std::chrono::steady_clock::now(), hurry); !why.empty())
        spdlog::warn("{}: dropped, {}", s->peer(), why);
  }
}

namespace {

/// The boot of the host, and the device of the file system there; empty: no folder.
std::string disk_of(const std::filesystem::path& folder) {
  struct ::stat st {};
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty() || ::stat(folder.c_str(), &st) != 0) return {};
  return boot + " " + std::to_string(st.st_dev);
}

}  // namespace

wire::node_statistics iod_server::statistics() {
  wire::node_statistics s;
  s.io = node_->stats();
  const auto load = node_->present_load();
  s.waiting = load.waiting;
  s.running = load.running;
  s.buffer_bytes = buffers_->in_use();
  s.buffer_limit = buffers_->limit();
  try {
    if (const auto space = node_->space()) {
      s.disk_bytes = space->size;
      s.disk_free = space->free;
      s.disk = disk_of(options_.folder);
    }
  } catch (const io_error&) {
    // A disk that is gone is said by what is read from it.
  }
  s.started_ns = started_ns_;
  s.version = OOCARRAY_VERSION;
  const lock_guard lock(mutex_);
  if (options_.folder.empty()) s.disk = store_uuid_;  // all gateways of a store have the same
  s.clients = static_cast<std::uint64_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& x) { return x->welcomed(); }));
  return s;
}

}  // namespace ooc::iod
