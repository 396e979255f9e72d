#include "metad/call_handler.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/service/permission.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::metad {

namespace pb = wire::pb;
using storage::entry;
using storage::served_call;

namespace {

constexpr std::size_t max_listed = 1000;           // entries in one answer
constexpr std::size_t max_listed_bytes = 1 << 20;  // about, of their texts
constexpr std::size_t max_ids = 100'000;           // in one answer
constexpr std::uint32_t maker_rights =
    wire::right_read | wire::right_write | wire::right_make | wire::right_remove;

/// A part of `ids` in ascending order, those above `after`.
void write_ids(std::vector<file_id> ids, file_id after, pb::Answer& a) {
  std::sort(ids.begin(), ids.end());
  const auto first = std::upper_bound(ids.begin(), ids.end(), after);
  const auto n = std::min<std::size_t>(max_ids, static_cast<std::size_t>(ids.end() - first));
  a.mutable_ids()->Add(first, first + static_cast<std::ptrdiff_t>(n));
  a.set_more(first + static_cast<std::ptrdiff_t>(n) != ids.end());
}

/// Whether what the call has made ends with its client: a lease, or a file that has no name yet, or none any more.
bool is_kept_for_client(const pb::Call& c, const pb::Answer& a) {
  if (c.op() == pb::OP_TAKE_LEASE) return a.granted();
  if (c.op() == pb::OP_CREATE) return !c.file().finished();
  return a.has_entry() && a.entry().has_names() && a.entry().names() == 0;
}

/// Of `wanted`, what `who` may do with the file.
std::uint32_t granted(storage::credentials who, const entry& e, std::uint32_t wanted) {
  std::uint32_t rights = 0;
  if (storage::permits(who, e, storage::may_read)) rights |= wire::right_read;
  if (storage::permits(who, e, storage::may_write)) rights |= wire::right_write;
  return rights & wanted;
}

}  // namespace

namespace {

/// What a call was about, if it is still there, else what is remembered of it.
void write_as_it_is(served_call& as, const entry& remembered, pb::Answer& a) {
  try {
    wire::write_entry(as.by_id().stat(remembered.id), *a.mutable_entry());
  } catch (const usage_error&) {
    entry gone = remembered;
    gone.names = 0;
    wire::write_entry(gone, *a.mutable_entry());
  }
}

}  // namespace

call_handler::call_handler(const metadata_folder& folder, std::chrono::seconds capability_life,
                           std::chrono::seconds grace,
                           std::function<bool(const client_key&)> alive,
                           std::function<storage::claim_holder(const client_key&)> described)
    : described_(std::move(described)),
      metadata_(folder.database(), folder.store_uuid(), std::move(alive)),
      leases_(folder),
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
  (void)metadata_.dead();  // moves there what its makers have left behind
}

void call_handler::lose(const client_key& client) {
  leases_.drop_all(client);
  metadata_.lose_client(client);
  (void)metadata_.dead();
}

pb::Answer call_handler::answer(const caller& from, const pb::Call& c) {
  ++calls_;
  if (pb::Operation_IsValid(c.op())) ++by_operation_[c.op()];
  const bool changes = c.op() >= pb::OP_CREATE;
  if (changes != (c.sequence() != 0))
    refuse(EINVAL, "calls that change something carry a sequence number, and only they");
  served_call as = metadata_.of(from.who, {from.client, c.sequence()});
  pb::Answer a;
  if (!changes)
    look(as, from, c, a);
  else if (!c.again() || !answer_again(as, from, c, a))
    change(as, from, c, a);
  if (is_kept_for_client(c, a)) a.set_grace_ms(grace_.count());
  return a;
}

void call_handler::give_removal_capability(const caller& from, file_id file, pb::Answer& a) {
  entry e;
  e.id = file;
  give_capability(from, e, wire::right_remove, a);
}

void call_handler::give_capability(const caller& from, const entry& e, std::uint32_t rights,
                               pb::Answer& a) {
  wire::capability cap;
  cap.file = e.id;
  cap.geometry = wire::geometry_of(storage::allocated_size(e), e.striping, e.sparse, e.fill);
  cap.rights = rights;
  cap.uid = from.who.uid;
  cap.holder = from.holder;
  cap.expiry = wire::seconds_now() + capability_life_.count();
  cap.serial = ++serial_;
  cap.store_uuid = store_uuid_;
  a.set_capability(signer_.sign(cap));
  a.set_capability_seconds(capability_life_.count());
  a.set_capability_rights(rights);
  a.set_capability_size(storage::allocated_size(e));
}

void call_handler::look(served_call& as, const caller& from, const pb::Call& c, pb::Answer& a) {
  switch (c.op()) {
    case pb::OP_LOOKUP:
      wire::write_entry(as.lookup(c.path()), *a.mutable_entry());
      return;
    case pb::OP_OPEN: {
      const entry e = as.open(c.path(), (c.rights() & wire::right_write) != 0, c.unfinished());
      wire::write_entry(e, *a.mutable_entry());
      return give_capability(from, e, granted(from.who, e, c.rights()), a);
    }
    case pb::OP_FIND: {
      const auto made = as.being_made(c.id());  // whose maker has told others of it
      const entry e = made ? made->meta : as.find(c.id());
      wire::write_entry(e, *a.mutable_entry());
      const std::uint32_t rights = granted(from.who, e, c.rights());
      if (rights != 0) give_capability(from, e, rights, a);
      return;
    }
    case pb::OP_LIST:
      return list(as, c, a);
    case pb::OP_FILES: {
      const auto ids = as.files_above(c.id(), max_ids);
      a.mutable_ids()->Add(ids.begin(), ids.end());
      return a.set_more(ids.size() == max_ids);
    }
    case pb::OP_UNFINISHED:
      return write_ids(as.unfinished(), c.id(), a);
    case pb::OP_DEAD:
      return write_ids(as.dead(), c.id(), a);
    case pb::OP_CAPABILITY:
      return renew_capability(as, from, c, a);
    case pb::OP_REMOVAL_CAPABILITY:
      as.removal_capability(c.id());
      return give_removal_capability(from, c.id(), a);
    case pb::OP_STAT:
      return wire::write_entry(as.by_id().stat(c.id()), *a.mutable_entry());
    case pb::OP_LOOK_IN:
      return wire::write_entry(as.by_id().look_in({c.folder(), c.path()}), *a.mutable_entry());
    case pb::OP_LIST_IN: {
      const storage::folder_part part = as.by_id().list_in(c.folder(), c.after());
      for (const entry& e : part.entries) wire::write_entry(e, *a.add_entries());
      return a.set_more(part.more);
    }
    case pb::OP_SYNC:
      return as.sync();
    case pb::OP_TAKE_LEASE:
      return take_lease(as, from, c, a);
    case pb::OP_DROP_LEASE:
      return leases_.drop(from.client, c.lease(), c.unsettled());
    default:
      refuse(ENOSYS, "call " + std::to_string(c.op()) + " is not known to this server");
  }
}

void call_handler::change(served_call& as, const caller& from, const pb::Call& c,
                          pb::Answer& a) {
  switch (c.op()) {
    case pb::OP_CREATE: {
      const storage::new_file f = wire::read_new_file(c.file());
      const entry e = as.create(c.path(), f);
      wire::write_entry(e, *a.mutable_entry());
      if (!f.finished) give_capability(from, e, maker_rights, a);
      return;
    }
    case pb::OP_COMMIT:
      return as.commit(c.id());
    case pb::OP_ABANDON:
      return as.abandon(c.id());
    case pb::OP_MKDIR:
      return as.mkdir(c.path(), c.mode(), c.parents());
    case pb::OP_RENAME:
      return as.rename(c.path(), c.to());
    case pb::OP_REMOVE: {
      const entry e = as.remove(c.path());
      wire::write_entry(e, *a.mutable_entry());
      if (e.kind == storage::entry_kind::file && e.names == 0) give_removal_capability(from, e.id, a);
      return;
    }
    case pb::OP_FORGET:
      return as.forget(c.id());
    case pb::OP_SET_SIZE:
      require_size_lease(as, from, c.id());
      return a.set_granted(as.set_size(
          c.id(), c.size(), {c.extents().begin(), c.extents().end()}, c.generation(), c.reserved()));
    case pb::OP_SET_GENERATION:
      // Clients of earlier releases do not say what they know of.
      return a.set_outgrown(!as.set_generation(
          c.id(), c.generation(), c.has_allocated() ? c.allocated() : std::numeric_limits<std::int64_t>::max()));
    case pb::OP_SET_IN_PROGRESS:
      return as.set_in_progress(c.id(), c.value());
    case pb::OP_SET_ATTRIBUTE:
      return as.set_attribute(c.path(), c.key(), c.value());
    case pb::OP_REMOVE_ATTRIBUTE:
      return as.remove_attribute(c.path(), c.key());
    case pb::OP_SET_MODE:
      return as.set_mode(c.path(), c.mode());
    case pb::OP_SET_OWNER:
      return as.set_owner(c.path(), c.uid(), c.gid());
    case pb::OP_MAKE:
      return wire::write_entry(as.by_id().make({c.folder(), c.path()}, wire::read_new_entry(c.made())),
                               *a.mutable_entry());
    case pb::OP_LINK:
      return wire::write_entry(as.by_id().link(c.id(), {c.to_folder(), c.to()}), *a.mutable_entry());
    case pb::OP_UNLINK:
      return wire::write_entry(as.by_id().unlink({c.folder(), c.path()}, c.is_folder()), *a.mutable_entry());
    case pb::OP_MOVE: {
      const entry e = as.by_id().move({c.folder(), c.path()}, {c.to_folder(), c.to()}, c.replace());
      if (e.id != 0) wire::write_entry(e, *a.mutable_entry());
      return;
    }
    case pb::OP_CHANGE:
      return wire::write_entry(as.by_id().change(c.id(), wire::read_change(c.change())), *a.mutable_entry());
    case pb::OP_SET_ATTRIBUTE_OF:
      return as.by_id().set_attribute(c.id(), c.key(), c.value());
    case pb::OP_REMOVE_ATTRIBUTE_OF:
      return as.by_id().remove_attribute(c.id(), c.key());
    default:
      refuse(ENOSYS, "call " + std::to_string(c.op()) + " is not known to this server");
  }
}

/// The answer to a call that was made before, if it was carried out then.
bool call_handler::answer_again(served_call& as, const caller& from, const pb::Call& c,
                                pb::Answer& a) {
  const auto done = as.outcome();
  if (!done) return false;
  // What it was making ended with its grace period, and is made anew.
  if (c.op() == pb::OP_CREATE && !c.file().finished() && !as.being_made(done->id)) return false;
  if (c.op() == pb::OP_REMOVE) {
    entry e = *done;
    e.path = c.path();
    e.names = as.names_of(e.id);
    wire::write_entry(e, *a.mutable_entry());
    if (e.kind == storage::entry_kind::file && e.names == 0) give_removal_capability(from, e.id, a);
  }
  switch (c.op()) {
    case pb::OP_MAKE:
    case pb::OP_LINK:
    case pb::OP_UNLINK:
    case pb::OP_MOVE:
    case pb::OP_CHANGE:
      if (done->id != 0) write_as_it_is(as, *done, a);
      break;
    default:
      break;
  }
  if (c.op() == pb::OP_SET_SIZE) a.set_granted(true);  // only then it was carried out
  if (c.op() == pb::OP_CREATE) {
    entry e = *done;
    e.path = c.path();
    e.owner = from.who.uid;
    e.group = from.who.gid;
    const storage::new_file f = wire::read_new_file(c.file());
    e.mode = f.mode & 07777;
    e.generation = 1;
    e.sparse = f.sparse;
    e.fill = f.fill;
    e.array = f.array;
    wire::write_entry(e, *a.mutable_entry());
    if (!f.finished) give_capability(from, e, maker_rights, a);
  }
  return true;
}

void call_handler::list(served_call& as, const pb::Call& c, pb::Answer& a) {
  const auto part = as.list_part(c.path(), c.after(), max_listed, max_listed_bytes);
  for (const entry& e : part.entries) wire::write_entry(e, *a.add_entries());
  a.set_more(part.more);
}

void call_handler::take_lease(served_call& as, const caller& from, const pb::Call& c,
                              pb::Answer& a) {
  if (c.lease_kind() < pb::LEASE_SIZE || c.lease_kind() > pb::LEASE_WRITER_TOGETHER)
    refuse(EINVAL, "there are no leases of kind " + std::to_string(c.lease_kind()));
  const entry e = as.find(c.id());
  if (!storage::permits(from.who, e, storage::may_write) && from.who.uid != e.owner)
    refuse(EACCES, "'" + e.path + "': user " + std::to_string(from.who.uid) +
                       " may not write it; its owner (user " + std::to_string(e.owner) +
                       ") can change the mode (`ooc chmod`)");
  const auto kind = static_cast<lease_kind>(c.lease_kind());
  // Whose size lease has ended is in the middle of a change of the size, and others may have changed it since.
  const bool lost = c.again() && kind == lease_kind::size && !leases_.has(from.client, c.lease());
  a.set_granted(!lost && leases_.take(from.client, c.lease(), c.id(), kind));
  if (a.granted()) {
    if (kind == lease_kind::size) a.set_fence_owed(leases_.owes_fence(e.id, e.generation));
    return;
  }
  // The one that keeps the caller waiting longest: one that is there, else the last to end.
  std::optional<storage::claim_holder> longest;
  for (const client_key& other : leases_.in_the_way(c.id(), kind)) {
    storage::claim_holder h = described_(other);
    const bool longer = !longest || (longest->ends.count() != 0 &&
                                     (h.ends.count() == 0 || h.ends > longest->ends));
    if (longer) longest = std::move(h);
  }
  if (!longest) return;
  a.set_holder(longest->name);
  a.set_holder_ms(longest->ends.count());
}

void call_handler::require_size_lease(served_call& as, const caller& from, file_id id) const {
  if (leases_.holds(from.client, id, lease_kind::size)) return;
  const entry e = as.find(id);
  if (!storage::permits(from.who, e, storage::may_write) && from.who.uid != e.owner) return;  // is refused for that
  throw io_error(std::make_error_code(std::errc::timed_out),
                 "'" + e.path + "': nothing was changed: this client does not hold the lock of the file's size, which it "
                                "loses where the server has not heard of it for too long; look at the file before you "
                                "change it again");
}

/// A new capability for one that a client holds.  The owner may keep what it has, whatever the
/// mode.
void call_handler::renew_capability(served_call& as, const caller& from, const pb::Call& c,
                                pb::Answer& a) {
  const auto made = as.being_made(c.id());
  if (made && made->by_caller) return give_capability(from, made->meta, c.rights() & maker_rights, a);
  if (c.rights() == wire::right_remove) {
    as.removal_capability(c.id());
    return give_removal_capability(from, c.id(), a);
  }
  entry e = made ? made->meta : as.find(c.id());
  const bool resizes = (c.rights() & wire::right_resize) != 0;
  const std::uint32_t wanted =
      resizes ? wire::right_write : c.rights() & (wire::right_read | wire::right_write);
  const std::uint32_t rights = from.who.uid == e.owner ? wanted : granted(from.who, e, wanted);
  if (rights != wanted)
    refuse(EACCES, "'" + e.path + "': user " + std::to_string(from.who.uid) +
                       " may not use it as before; its owner (user " + std::to_string(e.owner) +
                       ") has changed the mode");
  if (!resizes) return give_capability(from, e, rights, a);
  if (!leases_.holds(from.client, c.id(), lease_kind::size))
    refuse(EINVAL, "'" + e.path +
                       "': the right to change its size is given to who holds its size lease, and "
                       "this client does not, or not any more: it is lost where the server has not heard of the "
                       "client for longer than the grace period");
  // Until set_size() says what has become of it, both sizes may be asked of the nodes.
  e.size = std::max(storage::allocated_size(e), c.size());
  give_capability(from, e, wire::right_resize | wire::right_write, a);
}

}  // namespace ooc::metad
