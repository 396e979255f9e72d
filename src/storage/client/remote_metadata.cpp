#include "storage/client/remote_metadata.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/client/metadata_client.hpp"
#include "storage/wire/messages.hpp"
#include "storage/wire/metadata_calls.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::storage {

namespace pb = wire::pb;
using namespace std::chrono_literals;

namespace {

constexpr auto lock_patience = 60s;  // as on local stores
constexpr std::chrono::milliseconds abandon_patience = 2s;
constexpr auto renewal_patience = 2s;  // there is time to try again

granted_capability capability_of(const wire::call_reply& r) {
  return {r.capability.bytes, r.capability.life, r.capability.size};
}

}  // namespace

remote_metadata::remote_metadata(remote_metadata_options options)
    : deadline_(options.deadline),
      join_(options.join),
      claimant_(join_ ? uuid_text(options.client.id) : std::string()),
      link_(std::make_shared<metadata_client>(std::move(options))),
      capabilities_([link = link_](file_id id, std::uint32_t rights) {
        return capability_of(link->call(calls::capability{id, rights}, renewal_patience));
      }) {
  link_->connect();
}

remote_metadata::~remote_metadata() {
  capabilities_.stop();
  link_->goodbye();
}

known_epoch remote_metadata::epoch_of(const entry& file) const {
  const unsynced_files& changes = link_->changes();
  known_epoch k{changes.epoch(), changes.unsynced_in(file.id), {}};
  if (k.unsynced_in == 0) k.unsynced_in = changes.unsynced_in(0);
  if (changes.lost_since(file.id, file.opened) || changes.lost_since(0, file.opened))
    k.lost = lost_with_power(link_->name(), "the entry of '" + file.path + "'");
  return k;
}

void remote_metadata::synced_elsewhere(std::uint64_t before) { link_->changes().synced_all(before); }

failure remote_metadata::untold_loss() {
  const std::uint64_t last = link_->changes().last_loss();
  if (told_loss_.exchange(last) == last) return {};
  return {std::make_error_code(std::errc::io_error),
          link_->name() +
              ": its machine has lost its power, and what it had acknowledged of names, sizes and attributes and was "
              "not synced may be lost: look at what is there"};
}

cluster_info remote_metadata::cluster(std::optional<std::chrono::milliseconds> within) {
  const auto m = wire::parse_body<pb::Cluster>(
      link_->ask(wire::frame_kind::cluster, "cluster information", within.value_or(deadline_)));
  cluster_info info;
  info.store_uuid = m.store_uuid();
  info.asker = m.asker();
  info.gateways = m.gateways();
  for (const pb::NodeState& n : m.nodes()) {
    node_info& one = info.nodes.emplace_back();
    one.addresses.assign(n.addresses().begin(), n.addresses().end());
    one.uuid = n.node_uuid();
    one.incarnation = n.incarnation();
    one.up = n.up();
    one.retired = n.retired();
    one.disk_bytes = n.disk_bytes();
    one.disk_free = n.disk_free();
    one.refused = n.refused();
  }
  return info;
}

metadata_statistics remote_metadata::statistics() {
  const auto m = wire::parse_body<pb::MetadataStatistics>(link_->ask(wire::frame_kind::stats, "statistics", deadline_));
  metadata_statistics s;
  s.version = m.version();
  s.started_ns = m.started_ns();
  s.calls = m.calls();
  s.failures = m.failures();
  s.connections = m.connections();
  s.clients = m.clients();
  s.leases = m.leases();
  for (const pb::OperationCount& o : m.operations()) s.operations[wire::operation_name(o.op())] = o.calls();
  return s;
}

metadata_answer remote_metadata::answer(const metadata_call& call) {
  return std::visit(
      overloaded{
          [&](calls::create q) -> metadata_answer { return created(std::move(q)); },
          [&](const calls::find& q) -> metadata_answer { return found(q); },
          [&](calls::make_folder q) -> metadata_answer {
            q.mode &= ~process_umask();
            return link_->call(q).answer;
          },
          // A server that cannot be told now finds out when this client has gone: no caller should wait for that.
          [&](const calls::abandon& q) { return link_->call(q, std::min(deadline_, abandon_patience)).answer; },
          [&](const calls::capability& q) -> metadata_answer {
            const granted_capability granted = capability_of(link_->call(q));
            if (q.rights == right_resize) return std::make_shared<wire::plain_capability>(granted.bytes);
            return capabilities_.keep(q.id, q.rights, granted);
          },
          [&]<class Call>(const Call& q) -> metadata_answer {
            wire::call_reply reply = link_->call(q);
            if constexpr (std::is_same_v<answer_of<Call>, entry>) return with_capability(std::move(reply));
            return std::move(reply.answer);
          },
      },
      call);
}

/// The entry of an answer, with the capability that came with it.
entry remote_metadata::with_capability(wire::call_reply reply) {
  entry e = std::get<entry>(std::move(reply.answer));
  if (!reply.capability.bytes.empty())
    e.capability = capabilities_.keep(e.id, reply.capability.rights, capability_of(reply));
  return e;
}

entry remote_metadata::created(calls::create q) {
  q.file.mode &= ~process_umask();
  entry e = with_capability(link_->call(q));
  // The maker of a file may write it, whatever else this client has it open for.
  if (!e.capability) e.capability = capabilities_.keep_for_later(e.id, right_read | right_write);
  return e;
}

entry remote_metadata::found(calls::find q) {
  constexpr std::uint32_t wanted = right_read | right_write;
  // This client keeps the rights that it has already; else it gets whatever the server grants.
  const capability_ptr held = capabilities_.in_use(q.id, wanted);
  if (held && !held->bytes().empty()) q.rights = 0;
  entry e = with_capability(link_->call(q));
  if (e.id != q.id) return found({e.id, wanted, q.at_commit});  // that has taken its place
  // The file may have grown since the right to it was granted.
  const capability_ptr granted = std::exchange(e.capability, nullptr);  // held, so that it is in use
  e.capability = capabilities_.in_use(q.id, wanted, allocated_size(e));
  if (!e.capability) e.capability = capabilities_.in_use(q.id, right_read, allocated_size(e));
  return e;
}

size_lock_ptr remote_metadata::lock_size(file_id id) {
  const auto deadline = std::chrono::steady_clock::now() + lock_patience;
  for (auto pause = 1ms;; pause = std::min(2 * pause, 50ms)) {
    if (auto guard = link_->take_size(id)) return guard;
    if (std::chrono::steady_clock::now() > deadline)
      throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                              "file number " + std::to_string(id) +
                                  ": another client has been changing its size for 60 s: look for one "
                                  "that is stopped");
    std::this_thread::sleep_for(pause);
  }
}

std::shared_ptr<void> remote_metadata::claim_writer(file_id id, bool together, claim_holder* in_the_way) {
  return link_->take(id, together ? wire::lease_kind::shared_writer : wire::lease_kind::exclusive_writer, in_the_way);
}

bool remote_metadata::has_lost_claim(file_id id) { return link_->has_lost_claim(id); }

}  // namespace ooc::storage
