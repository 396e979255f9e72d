#include "storage/wire/metadata_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <type_traits>
#include <variant>

#include "storage/base/refuse.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::wire {

namespace calls = storage::calls;
using storage::entry;
using storage::place;

namespace {

// Of calls that say the id of a file, and nothing else.
template <class Call>
constexpr pb::Operation by_id{};
template <>
constexpr pb::Operation by_id<calls::commit> = pb::OP_COMMIT;
template <>
constexpr pb::Operation by_id<calls::abandon> = pb::OP_ABANDON;
template <>
constexpr pb::Operation by_id<calls::forget> = pb::OP_FORGET;
template <>
constexpr pb::Operation by_id<calls::roll_back> = pb::OP_ROLL_BACK;

// Writes a call to its message and returns its number.  Most that name an entry have two: by its id, and by a path.
struct call_writer {
  pb::Call& m;

  pb::Operation operator()(const calls::lookup& q) {
    put_id_or_place(q.where);
    if (q.where.path.empty()) return pb::OP_STAT;
    return q.where.folder == storage::root_id ? pb::OP_LOOKUP : pb::OP_LOOK_IN;
  }
  pb::Operation operator()(const calls::open& q) {
    put_place(q.where);
    m.set_rights(q.write ? storage::right_read | storage::right_write : storage::right_read);
    m.set_unfinished(q.unfinished);
    return pb::OP_OPEN;
  }
  pb::Operation operator()(const calls::find& q) {
    m.set_rights(q.rights);
    m.set_at_commit(q.at_commit);
    return with_id(q.id, pb::OP_FIND);
  }
  pb::Operation operator()(const calls::list& q) {
    put_place(q.where);
    m.set_after(q.after);
    if (!q.where.path.empty()) return pb::OP_LIST;
    m.set_folder(q.where.folder);
    return pb::OP_LIST_IN;
  }
  pb::Operation operator()(const calls::ids& q) {
    m.set_id(q.after);
    if (q.state == storage::file_state::committed) return pb::OP_FILES;
    return q.state == storage::file_state::unfinished ? pb::OP_UNFINISHED : pb::OP_DEAD;
  }
  pb::Operation operator()(const calls::capability& q) {
    m.set_id(q.id);
    m.set_size(q.size);
    if (q.rights == storage::right_remove) return pb::OP_REMOVAL_CAPABILITY;
    m.set_rights(q.rights);
    return pb::OP_CAPABILITY;
  }
  pb::Operation operator()(const calls::sync&) { return pb::OP_SYNC; }
  template <class Call>
  requires(by_id<Call> != pb::Operation()) pb::Operation operator()(const Call& q) {
    return with_id(q.id, by_id<Call>);
  }
  pb::Operation operator()(const calls::create& q) {
    put_place(q.where);
    write_new_file(q.file, *m.mutable_file());
    return pb::OP_CREATE;
  }
  pb::Operation operator()(const calls::make_folder& q) {
    put_place(q.where);
    m.set_mode(q.mode);
    m.set_parents(q.parents);
    return pb::OP_MKDIR;
  }
  pb::Operation operator()(const calls::make& q) {
    put_place(q.where);
    m.set_folder(q.where.folder);
    write_new_entry(q.what, *m.mutable_made());
    return pb::OP_MAKE;
  }
  pb::Operation operator()(const calls::link& q) {
    m.set_id(q.id);
    m.set_to_folder(q.where.folder);
    m.set_to(q.where.path);
    return pb::OP_LINK;
  }
  pb::Operation operator()(const calls::move& q) {
    put_place(q.from);
    m.set_to(q.to.path);
    if (!q.replace && q.from.folder == storage::root_id && q.to.folder == storage::root_id) return pb::OP_RENAME;
    m.set_folder(q.from.folder);
    m.set_to_folder(q.to.folder);
    m.set_replace(q.replace);
    return pb::OP_MOVE;
  }
  pb::Operation operator()(const calls::remove& q) {
    put_place(q.where);
    return pb::OP_REMOVE;
  }
  pb::Operation operator()(const calls::unlink& q) {
    put_place(q.where);
    m.set_folder(q.where.folder);
    m.set_is_folder(q.folder);
    return pb::OP_UNLINK;
  }
  pb::Operation operator()(const calls::take_over& q) {
    m.set_of(q.of);
    m.set_generation(q.generation);
    return with_id(q.id, pb::OP_TAKE_OVER);
  }
  pb::Operation operator()(const calls::set_size& q) {
    m.set_id(q.id);
    m.set_size(q.size);
    m.mutable_extents()->Add(q.extents.begin(), q.extents.end());
    m.set_generation(q.generation);
    m.set_reserved(q.reserved);
    return pb::OP_SET_SIZE;
  }
  pb::Operation operator()(const calls::set_generation& q) {
    m.set_id(q.id);
    m.set_generation(q.generation);
    m.set_allocated(q.allocated);
    return pb::OP_SET_GENERATION;
  }
  pb::Operation operator()(const calls::set_in_progress& q) {
    m.set_id(q.id);
    m.set_value(q.what);
    return pb::OP_SET_IN_PROGRESS;
  }
  pb::Operation operator()(const calls::decide& q) {
    for (const calls::decide::file& f : q.files) {
      pb::Decided& decided = *m.add_decided();
      decided.set_id(f.id);
      decided.set_after(f.after);
    }
    m.set_time_ns(q.time_ns);
    write_attributes(q.attributes, *m.mutable_attributes());
    return pb::OP_DECIDE;
  }
  pb::Operation operator()(const calls::change& q) {
    put_id_or_place(q.where);
    storage::entry_change but_owner = q.what, but_mode = q.what;
    but_owner.owner = but_owner.group = {};
    but_mode.mode = {};
    const bool from_root = !q.where.path.empty() && q.where.folder == storage::root_id;
    if (from_root && but_owner.empty()) {
      m.set_uid(q.what.owner.value_or(storage::keep_id));
      m.set_gid(q.what.group.value_or(storage::keep_id));
      return pb::OP_SET_OWNER;
    }
    if (from_root && but_mode.empty()) {
      m.set_mode(*q.what.mode);
      return pb::OP_SET_MODE;
    }
    write_change(q.what, *m.mutable_change());
    return pb::OP_CHANGE;
  }
  pb::Operation operator()(const calls::set_attribute& q) {
    put_id_or_place(q.where);
    m.set_key(q.key);
    m.set_value(q.value);
    return q.where.path.empty() ? pb::OP_SET_ATTRIBUTE_OF : pb::OP_SET_ATTRIBUTE;
  }
  pb::Operation operator()(const calls::remove_attribute& q) {
    put_id_or_place(q.where);
    m.set_key(q.key);
    return q.where.path.empty() ? pb::OP_REMOVE_ATTRIBUTE_OF : pb::OP_REMOVE_ATTRIBUTE;
  }
  pb::Operation operator()(const take_lease& q) {
    m.set_lease(q.number);
    m.set_id(q.file);
    m.set_lease_kind(static_cast<pb::LeaseKind>(q.kind));
    return pb::OP_TAKE_LEASE;
  }
  pb::Operation operator()(const drop_lease& q) {
    m.set_lease(q.number);
    m.set_unsettled(q.unsettled);
    return pb::OP_DROP_LEASE;
  }
  pb::Operation operator()(const goodbye&) { return pb::OP_GOODBYE; }

 private:
  void put_place(const place& p) {
    if (p.folder != storage::root_id) m.set_folder(p.folder);
    m.set_path(p.path);
  }
  void put_id_or_place(const place& p) {
    if (p.path.empty()) return m.set_id(p.folder);
    put_place(p);
  }
  pb::Operation with_id(storage::file_id id, pb::Operation op) {
    m.set_id(id);
    return op;
  }
};

// And back.

place place_of(std::uint64_t folder, const std::string& path) {
  return {folder == 0 ? storage::root_id : folder, path};
}

lease_kind lease_kind_of(const pb::Call& m) {
  if (m.lease_kind() < pb::LEASE_SIZE || m.lease_kind() > pb::LEASE_WRITER_TOGETHER)
    ooc::refuse(EINVAL, "there are no leases of kind " + std::to_string(m.lease_kind()));
  return static_cast<lease_kind>(m.lease_kind());
}

calls::decide decide_of(const pb::Call& m) {
  calls::decide q{{}, m.time_ns(), read_attributes(m.attributes())};
  for (const pb::Decided& f : m.decided()) q.files.push_back({f.id(), f.after()});
  return q;
}

any_call call_of(const pb::Call& m) {
  const place where = place_of(m.folder(), m.path());
  const place id = where.path.empty() && m.folder() == 0 ? place(m.id()) : where;
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  using enum storage::file_state;
  switch (m.op()) {
    case pb::OP_LOOKUP:
    case pb::OP_LOOK_IN: return calls::lookup{where};
    case pb::OP_STAT: return calls::lookup{m.id()};
    case pb::OP_OPEN: return calls::open{where, (m.rights() & storage::right_write) != 0, m.unfinished()};
    case pb::OP_FIND: return calls::find{m.id(), m.rights(), m.at_commit()};
    case pb::OP_LIST:
    case pb::OP_LIST_IN: return calls::list{where, m.after()};
    case pb::OP_FILES: return calls::ids{committed, m.id()};
    case pb::OP_UNFINISHED: return calls::ids{unfinished, m.id()};
    case pb::OP_DEAD: return calls::ids{dead, m.id()};
    case pb::OP_CAPABILITY: return calls::capability{m.id(), m.rights(), m.size()};
    case pb::OP_REMOVAL_CAPABILITY: return calls::capability{m.id(), storage::right_remove};
    case pb::OP_SYNC: return calls::sync{};
    case pb::OP_TAKE_LEASE: return take_lease{m.lease(), m.id(), lease_kind_of(m)};
    case pb::OP_DROP_LEASE: return drop_lease{m.lease(), m.unsettled()};
    case pb::OP_GOODBYE: return goodbye{};
    case pb::OP_CREATE: return calls::create{where, read_new_file(m.file())};
    case pb::OP_COMMIT: return calls::commit{m.id()};
    case pb::OP_ABANDON: return calls::abandon{m.id()};
    case pb::OP_FORGET: return calls::forget{m.id()};
    case pb::OP_MKDIR: return calls::make_folder{where, m.mode(), m.parents()};
    case pb::OP_MAKE: return calls::make{where, read_new_entry(m.made())};
    case pb::OP_LINK: return calls::link{m.id(), place_of(m.to_folder(), m.to())};
    case pb::OP_RENAME:
    case pb::OP_MOVE: return calls::move{where, place_of(m.to_folder(), m.to()), m.replace()};
    case pb::OP_REMOVE: return calls::remove{where};
    case pb::OP_UNLINK: return calls::unlink{where, m.is_folder()};
    case pb::OP_TAKE_OVER: return calls::take_over{m.id(), m.of(), m.generation()};
    case pb::OP_SET_SIZE:
      return calls::set_size{m.id(), m.size(), {m.extents().begin(), m.extents().end()}, m.generation(), m.reserved()};
    case pb::OP_SET_GENERATION:
      // Clients of earlier releases do not say what they know of.
      return calls::set_generation{m.id(), m.generation(), m.has_allocated() ? m.allocated() : most};
    case pb::OP_SET_IN_PROGRESS: return calls::set_in_progress{m.id(), m.value()};
    case pb::OP_DECIDE: return decide_of(m);
    case pb::OP_ROLL_BACK: return calls::roll_back{m.id()};
    case pb::OP_CHANGE: return calls::change{id, read_change(m.change())};
    case pb::OP_SET_MODE: return calls::change{where, storage::mode_change(m.mode())};
    case pb::OP_SET_OWNER: return calls::change{where, storage::owner_change(m.uid(), m.gid())};
    case pb::OP_SET_ATTRIBUTE: return calls::set_attribute{where, m.key(), m.value()};
    case pb::OP_SET_ATTRIBUTE_OF: return calls::set_attribute{id, m.key(), m.value()};
    case pb::OP_REMOVE_ATTRIBUTE: return calls::remove_attribute{where, m.key()};
    case pb::OP_REMOVE_ATTRIBUTE_OF: return calls::remove_attribute{id, m.key()};
    default: ooc::refuse(ENOSYS, "call " + std::to_string(m.op()) + " is not known to this server");
  }
}

// Answers.

template <class Call>
constexpr bool may_have_no_entry = std::is_same_v<Call, calls::move> || std::is_same_v<Call, calls::change>;

struct answer_writer {
  pb::Answer& m;

  void operator()(const calls::set_size&, bool done) { m.set_granted(done); }
  void operator()(const calls::set_generation&, bool done) { m.set_outgrown(!done); }
  template <class Call>
  void operator()(const Call&, const entry& e) {
    if (e.id != 0 || !may_have_no_entry<Call>) write_entry(e, *m.mutable_entry());
  }
  void operator()(const auto&, const storage::folder_part& part) {
    for (const entry& e : part.entries) write_entry(e, *m.add_entries());
    m.set_more(part.more);
  }
  void operator()(const auto&, const storage::id_part& part) {
    m.mutable_ids()->Add(part.ids.begin(), part.ids.end());
    m.set_more(part.more);
  }
  void operator()(const auto&, const storage::nothing&) {}
  void operator()(const auto&, const storage::capability_ptr&) {}  // call_reply::capability
};

template <class Call>
storage::metadata_answer taken_from(const Call&, const pb::Answer& m) {
  using type = storage::answer_of<Call>;
  if constexpr (std::is_same_v<Call, calls::set_size>) {
    return m.granted();
  } else if constexpr (std::is_same_v<Call, calls::set_generation>) {
    return !m.outgrown();
  } else if constexpr (std::is_same_v<type, entry>) {
    return m.has_entry() || !may_have_no_entry<Call> ? read_entry(m.entry()) : entry();
  } else if constexpr (std::is_same_v<type, storage::folder_part>) {
    storage::folder_part part{{}, m.more() && !m.entries().empty()};
    for (const pb::Entry& e : m.entries()) part.entries.push_back(read_entry(e));
    return part;
  } else if constexpr (std::is_same_v<type, storage::id_part>) {
    return storage::id_part{{m.ids().begin(), m.ids().end()}, m.more()};
  } else {
    return type{};
  }
}

}  // namespace

bool changes(const any_call& c) {
  return std::visit([]<class Call>(const Call&) { return calls::changes<Call>; }, c);
}

int operation_of(const any_call& c) {
  pb::Call m;
  return std::visit(call_writer{m}, c);
}

std::string operation_name(int operation) {
  std::string name = pb::Operation_Name(static_cast<pb::Operation>(operation));
  if (name.starts_with("OP_")) name.erase(0, 3);
  for (char& c : name) c = c == '_' ? ' ' : static_cast<char>(c | 0x20);
  return name;
}

std::string encode(const sent_call& c) {
  pb::Call m;
  m.set_op(std::visit(call_writer{m}, c.what));
  m.set_sequence(c.sequence);
  m.set_again(c.again);
  return m.SerializeAsString();
}

sent_call decode_call(std::string_view body) {
  const auto m = parse_body<pb::Call>(body);
  return {call_of(m), m.sequence(), m.again(), m.op()};
}

std::string encode(const any_call& asked, const call_reply& r) {
  pb::Answer m;
  std::visit(
      [&]<class Call>(const Call& q) {
        answer_writer{m}(q, std::get<storage::answer_of<Call>>(r.answer));
        if constexpr (std::is_same_v<Call, take_lease>) {
          m.set_granted(r.lease.granted);
          m.set_fence_owed(r.lease.owes_fence);
          m.set_holder(r.lease.holder.name);
          m.set_holder_ms(r.lease.holder.ends.count());
        }
      },
      asked);
  m.set_capability(r.capability.bytes);
  m.set_capability_seconds(r.capability.life.count());
  m.set_capability_rights(r.capability.rights);
  m.set_capability_size(r.capability.size);
  m.set_grace_ms(r.grace.count());
  return m.SerializeAsString();
}

call_reply decode_reply(const any_call& asked, std::string_view body) {
  const auto m = parse_body<pb::Answer>(body);
  call_reply r;
  r.answer = std::visit([&](const auto& q) { return taken_from(q, m); }, asked);
  using namespace std::chrono;
  r.capability = {m.capability(), seconds(m.capability_seconds()), m.capability_rights(), m.capability_size()};
  r.lease = {m.granted(), m.fence_owed(), {m.holder(), milliseconds(std::max<std::int64_t>(0, m.holder_ms()))}};
  r.grace = std::chrono::milliseconds(m.grace_ms());
  return r;
}

}  // namespace ooc::wire
