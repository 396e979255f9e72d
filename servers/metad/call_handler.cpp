#include "metad/call_handler.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <type_traits>
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/service/permission.hpp"

namespace ooc::metad {

namespace calls = storage::calls;
using storage::entry;
using storage::right_make, storage::right_read, storage::right_remove, storage::right_resize, storage::right_write;
using storage::served_call;

namespace {

constexpr std::uint32_t maker_rights = right_read | right_write | right_make | right_remove;

/// Of `wanted`, what `who` may do with the file.
std::uint32_t granted(storage::credentials who, const entry& e, std::uint32_t wanted) {
  std::uint32_t rights = 0;
  if (storage::permits(who, e, storage::may_read)) rights |= right_read;
  if (storage::permits(who, e, storage::may_write)) rights |= right_write;
  return rights & wanted;
}

bool may_write(const storage::credentials& who, const entry& e) {
  return storage::permits(who, e, storage::may_write) || who.uid == e.owner;
}

/// Whether what the call has made ends with its client: a lease, or a file that has no name yet, or none any more.
bool is_kept_for_client(const wire::any_call& c, const wire::call_reply& r) {
  if (std::holds_alternative<wire::take_lease>(c)) return r.lease.granted;
  if (const auto* made = std::get_if<calls::create>(&c)) return !made->file.finished;
  const auto* e = std::get_if<entry>(&r.answer);
  return e != nullptr && e->id != 0 && e->names == 0;
}

}  // namespace

/// A call that is being answered.
struct call_handler::question {
  served_call as;
  const caller& from;
  bool again = false;
  wire::call_reply reply{};
};

call_handler::call_handler(const metadata_folder& folder, std::chrono::seconds capability_life,
                           std::chrono::seconds grace, std::function<bool(const client_key&)> alive,
                           std::function<storage::claim_holder(const client_key&)> described,
                           std::function<void(const std::vector<client_key>&, bool)> clients_end)
    : described_(std::move(described)),
      clients_end_(std::move(clients_end)),
      metadata_(folder.database(), folder.store_uuid(), std::move(alive), folder.open_as()),
      leases_(metadata_.connection()),
      signer_(folder.signing_key()),
      store_uuid_(folder.store_uuid()),
      capability_life_(capability_life),
      grace_(grace) {}

std::vector<client_key> call_handler::remembered() const {
  std::vector<client_key> all = metadata_.clients();
  for (const client_key& c : leases_.clients()) all.push_back(c);
  return all;
}

void call_handler::end(const client_key& client) {
  leases_.drop_all(client);
  metadata_.forget_client(client);
  (void)metadata_.dead();                           // moves there what its makers have left behind
  if (clients_end_) clients_end_({client}, false);  // last: where the others fail, it may still be lost
}

void call_handler::lose(std::vector<client_key> clients) {
  const auto holds = [this](const client_key& c) { return holds_something(c); };
  const auto idle = std::partition(clients.begin(), clients.end(), holds);
  if (clients_end_) {  // before others may have what they hold, and all at once, as that takes its time
    if (idle != clients.begin()) clients_end_({clients.begin(), idle}, true);
    if (idle != clients.end()) clients_end_({idle, clients.end()}, false);
  }
  for (const client_key& c : clients) {
    leases_.drop_all(c);
    metadata_.lose_client(c);
  }
  (void)metadata_.dead();
}

wire::call_reply call_handler::answer(const caller& from, const wire::sent_call& c) {
  ++calls_;
  ++by_operation_[c.operation];
  if (wire::changes(c.what) != (c.sequence != 0))
    refuse(EINVAL, "calls that change something carry a sequence number, and only they");
  const auto reply = [&c](const storage::metadata_answer& a) {
    wire::call_reply r;
    r.answer = a;
    return wire::encode(c.what, r);
  };
  question q{metadata_.of(from.who, {from.client, c.sequence, reply}), from, c.again};
  const bool done = c.again && c.sequence != 0 && answer_again(q, c);
  std::visit(
      [&](const auto& one) {
        if (!done) answer(q, one);
        add_capability(q, one);
      },
      c.what);
  if (is_kept_for_client(c.what, q.reply)) q.reply.grace = grace_;
  return std::move(q.reply);
}

template <class Call>
void call_handler::answer(question& q, const Call& c) {
  if constexpr (std::is_same_v<Call, calls::set_size>) require_lease(q, c.id, lease_kind::size);
  // Who has written since the caller lost it must not find his bytes in the caller's commit.
  if constexpr (std::is_same_v<Call, calls::roll_back>) require_lease(q, c.id, lease_kind::exclusive_writer);
  if constexpr (std::is_same_v<Call, calls::take_over>) require_lease(q, c.of, lease_kind::exclusive_writer);
  if constexpr (std::is_same_v<Call, calls::decide>)
    for (const auto& f : c.files) require_lease(q, f.id, lease_kind::exclusive_writer);
  q.reply.answer = q.as.answer(c);
}

bool call_handler::answer_again(question& q, const wire::sent_call& c) {
  const auto kept = q.as.kept_reply();
  if (!kept) return false;
  wire::call_reply reply = wire::decode_reply(c.what, *kept);
  // The file that it was making ended with its grace period, and is made anew.
  if (const auto* made = std::get_if<calls::create>(&c.what);
      made != nullptr && !made->file.finished && !q.as.being_made(std::get<entry>(reply.answer).id))
    return false;
  q.reply = std::move(reply);
  return true;
}

template <class Call>
void call_handler::add_capability(question& q, const Call& c) {
  const auto* e = std::get_if<entry>(&q.reply.answer);
  if constexpr (std::is_same_v<Call, calls::open>)
    give_capability(q, *e, granted(q.from.who, *e, c.write ? right_read | right_write : right_read));
  if constexpr (std::is_same_v<Call, calls::create>)
    if (!c.file.finished) give_capability(q, *e, maker_rights);
  if constexpr (std::is_same_v<Call, calls::remove>)
    if (e->kind == storage::entry_kind::file && e->names == 0) give_removal(q, *e);
  if constexpr (std::is_same_v<Call, calls::take_over>) give_removal(q, *e);
}

// A kept reply may be that of another call, whose number somebody asks about: so the file must be gone.
void call_handler::give_removal(question& q, const entry& e) {
  (void)q.as.removal_capability(e.id);
  give_capability(q, e, right_remove);
}

void call_handler::give_capability(question& q, const entry& e, std::uint32_t rights) {
  wire::capability cap;
  cap.file = e.id;
  cap.geometry = wire::geometry_of(storage::allocated_size(e), e.striping, storage::has_sparse_objects(e), e.fill);
  cap.rights = rights;
  cap.uid = q.from.who.uid;
  cap.holder = q.from.holder;
  cap.expiry = wire::seconds_now() + capability_life_.count();
  cap.serial = ++serial_;
  cap.store_uuid = store_uuid_;
  q.reply.capability = {signer_.sign(cap), capability_life_, rights, storage::allocated_size(e)};
}

void call_handler::answer(question& q, const calls::find& c) {
  const auto made = q.as.being_made(c.id);  // whose maker has told others of it
  const entry e = made ? made->meta : q.as.find(c.id, c.at_commit);
  if (const std::uint32_t rights = granted(q.from.who, e, c.rights); rights != 0) give_capability(q, e, rights);
  q.reply.answer = e;
}

/// A new capability for one that a client holds.  The owner may keep what it has, whatever the
/// mode.
void call_handler::answer(question& q, const calls::capability& c) {
  const auto made = q.as.being_made(c.id);
  q.reply.answer = storage::capability_ptr();
  if (c.rights == right_remove) {
    entry gone;
    gone.id = c.id;
    return give_removal(q, gone);
  }
  if (made && made->by_caller) return give_capability(q, made->meta, c.rights & maker_rights);
  entry e = made ? made->meta : q.as.find(c.id);
  if (e.id != c.id) refuse(ENOENT, "file number " + std::to_string(c.id) + " has got other stripe objects");
  if (e.commit) e.size = std::max(e.size, q.as.find(c.id, true).size);  // for who reads the last commit
  const bool resizes = (c.rights & right_resize) != 0;
  const std::uint32_t wanted = resizes ? right_write : c.rights & (right_read | right_write);
  const std::uint32_t rights = q.from.who.uid == e.owner ? wanted : granted(q.from.who, e, wanted);
  if (rights != wanted)
    refuse(EACCES, "'" + e.path + "': user " + std::to_string(q.from.who.uid) +
                       " may not use it as before; its owner (user " + std::to_string(e.owner) +
                       ") has changed the mode");
  if (!resizes) return give_capability(q, e, rights);
  if (!leases_.holds(q.from.client, c.id, lease_kind::size))
    refuse(EINVAL, "'" + e.path +
                       "': the right to change its size is given to who holds its size lease, and "
                       "this client does not, or not any more: it is lost where the server has not heard of the "
                       "client for longer than the grace period");
  // Until set_size() says what has become of it, both sizes may be asked of the nodes.
  (e.codec.empty() ? e.size : e.reserved) = std::max(storage::allocated_size(e), c.size);
  give_capability(q, e, right_resize | right_write);
}

void call_handler::answer(question& q, const wire::take_lease& c) {
  const entry e = q.as.find(c.file);
  if (!may_write(q.from.who, e))
    refuse(EACCES, "'" + e.path + "': user " + std::to_string(q.from.who.uid) + " may not write it; its owner (user " +
                       std::to_string(e.owner) + ") can change the mode (`ooc chmod`)");
  auto& lease = q.reply.lease;
  // A client whose size lease has ended is in the middle of a change of the size, and others may have changed it
  // since.
  const bool lost = q.again && c.kind == lease_kind::size && !leases_.has(q.from.client, c.number);
  lease.granted = !lost && leases_.take(q.from.client, c.number, e.id, c.kind);
  if (lease.granted) {
    lease.owes_fence = c.kind == lease_kind::size && leases_.owes_fence(e.id, e.generation);
    return;
  }
  // The one that keeps the caller waiting longest: one that is there, else the last to end.
  std::optional<storage::claim_holder> longest;
  for (const client_key& other : leases_.in_the_way(e.id, c.kind)) {
    storage::claim_holder h = described_(other);
    const bool longer = !longest || (longest->ends.count() != 0 && (h.ends.count() == 0 || h.ends > longest->ends));
    if (longer) longest = std::move(h);
  }
  if (longest) lease.holder = std::move(*longest);
}

void call_handler::answer(question& q, const wire::drop_lease& c) {
  leases_.drop(q.from.client, c.number, c.unsettled);
}

void call_handler::require_lease(question& q, file_id id, lease_kind kind) const {
  if (leases_.holds(q.from.client, id, kind)) return;
  const entry e = q.as.find(id);
  if (!may_write(q.from.who, e)) return;  // is refused for that
  throw io_error(std::make_error_code(std::errc::timed_out),
                 "'" + e.path + "': nothing was changed: this client does not hold " +
                     (kind == lease_kind::size ? "the lock of the file's size" : "the claim to write it") +
                     ", which it loses where the server has not heard of it for too long; look at the file before you "
                     "change it again");
}

}  // namespace ooc::metad
