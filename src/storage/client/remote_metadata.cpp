#include "storage/client/remote_metadata.hpp"

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "storage/base/file_access.hpp"
#include "storage/client/metadata_client.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/messages.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::storage {

namespace pb = wire::pb;
using namespace std::chrono_literals;

namespace {

constexpr auto lock_patience = 60s;    // as on local stores
constexpr std::chrono::milliseconds abandon_patience = 2s;
constexpr auto renewal_patience = 2s;  // there is time to try again

pb::Call about(pb::Operation op, std::string_view path) {
  pb::Call c;
  c.set_op(op);
  c.set_path(path.data(), path.size());
  return c;
}

granted_capability capability_of(const pb::Answer& a) {
  return {a.capability(), std::chrono::seconds(a.capability_seconds()), a.capability_size()};
}

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<file_id> ids(metadata_client& link, pb::Operation operation) {
  std::vector<file_id> all;
  pb::Call c = call_about(operation, file_id{0});
  for (;;) {
    const pb::Answer a = link.call(c);
    all.insert(all.end(), a.ids().begin(), a.ids().end());
    if (!a.more() || a.ids().empty()) return all;
    c.set_id(all.back());
  }
}

}  // namespace

remote_metadata::remote_metadata(remote_metadata_options options)
    : metadata_service(true),
      deadline_(options.deadline),
      link_(std::make_shared<metadata_client>(std::move(options))),
      by_id_(link_),
      capabilities_([link = link_](file_id id, std::uint32_t rights) {
        pb::Call c = call_about(pb::OP_CAPABILITY, id);
        c.set_rights(rights);
        return capability_of(link->call(c, renewal_patience));
      }) {
  link_->connect();
}

remote_metadata::~remote_metadata() {
  capabilities_.stop();
  link_->goodbye();
}

cluster_info remote_metadata::cluster(std::optional<std::chrono::milliseconds> within) {
  const auto m = wire::parse_body<pb::Cluster>(
      link_->ask(wire::frame_kind::cluster, "cluster information", within.value_or(deadline_)));
  cluster_info info;
  info.store_uuid = m.store_uuid();
  info.asker = m.asker();
  for (const pb::NodeState& n : m.nodes()) {
    node_info& one = info.nodes.emplace_back();
    one.addresses.assign(n.addresses().begin(), n.addresses().end());
    one.uuid = n.node_uuid();
    one.incarnation = n.incarnation();
    one.up = n.up();
    one.disk_bytes = n.disk_bytes();
    one.disk_free = n.disk_free();
    one.refused = n.refused();
  }
  return info;
}

metadata_statistics remote_metadata::statistics() {
  const auto m = wire::parse_body<pb::MetadataStatistics>(
      link_->ask(wire::frame_kind::stats, "statistics", deadline_));
  metadata_statistics s;
  s.version = m.version();
  s.started_ns = m.started_ns();
  s.calls = m.calls();
  s.failures = m.failures();
  s.connections = m.connections();
  s.clients = m.clients();
  s.leases = m.leases();
  for (const pb::OperationCount& o : m.operations())
    s.operations[operation_name(o.op())] = o.calls();
  return s;
}

/// The entry of an answer, with the capability that came with it.
entry remote_metadata::entry_of(const pb::Answer& a) {
  entry e = wire::read_entry(a.entry());
  if (!a.capability().empty()) e.capability = capabilities_.keep(e.id, a.capability_rights(), capability_of(a));
  return e;
}

entry remote_metadata::lookup(std::string_view path) {
  pb::Call c = about(pb::OP_LOOKUP, path);
  return entry_of(link_->call(c));
}

entry remote_metadata::open(std::string_view path, bool write, bool unfinished) {
  pb::Call c = about(pb::OP_OPEN, path);
  c.set_rights(write ? wire::right_read | wire::right_write : wire::right_read);
  c.set_unfinished(unfinished);
  return entry_of(link_->call(c));
}

entry remote_metadata::find(file_id id) {
  pb::Call c = call_about(pb::OP_FIND, id);
  // What this client may do already, it may go on doing; else whatever the server grants.
  const capability_ptr held = capabilities_.in_use(id, wire::right_read | wire::right_write);
  if (!held || held->bytes().empty()) c.set_rights(wire::right_read | wire::right_write);
  entry e = entry_of(link_->call(c));
  // The file may have grown since the right to it was granted.
  const capability_ptr granted = std::exchange(e.capability, nullptr);  // held, so that it is in use
  e.capability = capabilities_.in_use(id, wire::right_read | wire::right_write, allocated_size(e));
  if (!e.capability) e.capability = capabilities_.in_use(id, wire::right_read, allocated_size(e));
  return e;
}

std::vector<entry> remote_metadata::list(std::string_view path) {
  std::vector<entry> all;
  pb::Call c = about(pb::OP_LIST, path);
  for (;;) {
    const pb::Answer a = link_->call(c);
    for (const pb::Entry& e : a.entries()) all.push_back(wire::read_entry(e));
    if (!a.more() || a.entries().empty()) return all;
    c.set_after(last_component(all.back().path));
  }
}

std::vector<file_id> remote_metadata::files() {
  return ids(*link_, pb::OP_FILES);
}

std::vector<file_id> remote_metadata::unfinished() {
  return ids(*link_, pb::OP_UNFINISHED);
}

std::vector<file_id> remote_metadata::dead() {
  return ids(*link_, pb::OP_DEAD);
}

capability_ptr remote_metadata::removal_capability(file_id id) {
  pb::Call c = call_about(pb::OP_REMOVAL_CAPABILITY, id);
  return capabilities_.keep(id, wire::right_remove, capability_of(link_->call(c)));
}

capability_ptr remote_metadata::size_capability(file_id id, std::uint64_t size) {
  pb::Call c = call_about(pb::OP_CAPABILITY, id);
  c.set_rights(wire::right_resize);
  c.set_size(size);
  return std::make_shared<wire::plain_capability>(link_->call(c).capability());
}

// Making and removing.

entry remote_metadata::create(std::string_view path, const new_file& f) {
  pb::Call c = about(pb::OP_CREATE, path);
  wire::write_new_file(f, *c.mutable_file());
  c.mutable_file()->set_mode(f.mode & ~process_umask());
  entry e = entry_of(link_->call(c));
  // Who has made a file may write it, whatever else this client has it open for.
  if (!e.capability) e.capability = capabilities_.keep_for_later(e.id, wire::right_read | wire::right_write);
  return e;
}

void remote_metadata::commit(file_id id) {
  pb::Call c = call_about(pb::OP_COMMIT, id);
  link_->call(c);
}

void remote_metadata::abandon(file_id id) {
  // Who cannot be told now finds out when this client has gone: nobody should wait for that.
  pb::Call c = call_about(pb::OP_ABANDON, id);
  link_->call(c, std::min(deadline_, abandon_patience));
}

void remote_metadata::mkdir(std::string_view path, std::uint32_t mode, bool parents) {
  pb::Call c = about(pb::OP_MKDIR, path);
  c.set_mode(mode & ~process_umask());
  c.set_parents(parents);
  link_->call(c);
}

void remote_metadata::rename(std::string_view from, std::string_view to) {
  pb::Call c = about(pb::OP_RENAME, from);
  c.set_to(to.data(), to.size());
  link_->call(c);
}

entry remote_metadata::remove(std::string_view path) {
  pb::Call c = about(pb::OP_REMOVE, path);
  return entry_of(link_->call(c));
}

void remote_metadata::forget(file_id id) {
  pb::Call c = call_about(pb::OP_FORGET, id);
  link_->call(c);
}

// Changing.

bool remote_metadata::set_size(file_id id, std::uint64_t size,
                               const std::vector<std::uint64_t>& extents,
                               std::uint64_t generation, std::uint64_t reserved) {
  pb::Call c = call_about(pb::OP_SET_SIZE, id);
  c.set_reserved(reserved);
  c.set_size(size);
  c.mutable_extents()->Add(extents.begin(), extents.end());
  c.set_generation(generation);
  return link_->call(c).granted();
}

bool remote_metadata::set_generation(file_id id, std::uint64_t generation, std::uint64_t allocated) {
  pb::Call c = call_about(pb::OP_SET_GENERATION, id);
  c.set_generation(generation);
  c.set_allocated(allocated);
  return !link_->call(c).outgrown();
}

void remote_metadata::set_in_progress(file_id id, std::string_view what) {
  pb::Call c = call_about(pb::OP_SET_IN_PROGRESS, id);
  c.set_value(what.data(), what.size());
  link_->call(c);
}

void remote_metadata::set_attribute(std::string_view path, std::string_view key,
                                    std::string_view value) {
  pb::Call c = about(pb::OP_SET_ATTRIBUTE, path);
  c.set_key(key.data(), key.size());
  c.set_value(value.data(), value.size());
  link_->call(c);
}

void remote_metadata::remove_attribute(std::string_view path, std::string_view key) {
  pb::Call c = about(pb::OP_REMOVE_ATTRIBUTE, path);
  c.set_key(key.data(), key.size());
  link_->call(c);
}

void remote_metadata::set_mode(std::string_view path, std::uint32_t mode) {
  pb::Call c = about(pb::OP_SET_MODE, path);
  c.set_mode(mode);
  link_->call(c);
}

void remote_metadata::set_owner(std::string_view path, std::uint32_t uid, std::uint32_t gid) {
  pb::Call c = about(pb::OP_SET_OWNER, path);
  c.set_uid(uid);
  c.set_gid(gid);
  link_->call(c);
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

std::shared_ptr<void> remote_metadata::claim_writer(file_id id, bool together,
                                                    claim_holder* in_the_way) {
  return link_->take(id, together ? pb::LEASE_WRITER_TOGETHER : pb::LEASE_WRITER_ALONE, in_the_way);
}

void remote_metadata::sync() {
  pb::Call c = call_about(pb::OP_SYNC, file_id{0});
  link_->call(c);
}

}  // namespace ooc::storage
