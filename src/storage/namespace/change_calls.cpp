// Calls that change what is known of an entry.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>

#include "storage/layout/element_type.hpp"
#include "storage/namespace/call_runner.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

namespace {

constexpr std::uint64_t greatest_size = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view striping_key = "ooc.striping", type_key = "ooc.type";

// "0,2,65536": first node, nodes, bytes of a stripe; after that, which nodes these are, where they do not follow one
// another.
ooc::striping striping_from_text(std::string_view text, const std::string& path, node_list& nodes) {
  ooc::striping s;
  unsigned long long sf = 0;
  int end = 0;
  const std::string given(text);
  const bool read = std::sscanf(given.c_str(), "%u,%u,%llu%n", &s.sn, &s.nn, &sf, &end) == 3;
  if (!read || s.nn == 0 || sf == 0 || sf > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / s.nn ||
      (static_cast<std::size_t>(end) != given.size() && given[static_cast<std::size_t>(end)] != ','))
    refuse(EINVAL, storage::in_quotes(path) + ": '" + given +
                       "' is no striping: give first node, nodes and bytes of a stripe, as in 0,2,65536");
  if (static_cast<std::size_t>(end) != given.size())
    nodes = nodes_from_text(text.substr(static_cast<std::size_t>(end) + 1));
  s.sf = sf;
  return s;
}

// Attributes that say how the bytes of a file are kept can be set as long as it has none.
void put_own_attribute(sqlite::connection& c, const entry& e, std::string_view key, std::string_view value) {
  if (e.kind != entry_kind::file || allocated_size(e) != 0 || !e.array.extents.empty())
    refuse(EPERM, storage::in_quotes(e.path) + ": striping and type are set as long as a file is empty");
  if (key == striping_key) {
    node_list nodes;
    ooc::striping s = striping_from_text(value, e.path, nodes);
    choose_nodes(c, storage::in_quotes(e.path), s, nodes);
    sqlite::run(c, "UPDATE entry SET sn = ?, nn = ?, sf = ?, stripe_map = ? WHERE id = ?", s.sn, s.nn, s.sf,
                map_column(c, nodes), e.id);
    return;
  }
  const std::uint32_t bytes = element_size(value);
  if (bytes == 0)
    refuse(EINVAL, storage::in_quotes(e.path) + ": there is no element type '" + std::string(value) + "'");
  sqlite::run(c, "UPDATE entry SET element_type = ?, element_size = ? WHERE id = ?", value, bytes, e.id);
}

// Of the root folder, lists of nodes that say where new files go.
bool lists_nodes(const path_resolution::node& n, std::string_view key) {
  return n.id == root_id && (key == drained_key || key == retired_key);
}

void require_owner_of_store(const credentials& who, const path_resolution::node& n, std::string_view key) {
  if (who.uid != 0 && who.uid != n.owner)
    refuse(EACCES, "only the owner of the root folder (user " + std::to_string(n.owner) + ") may change its '" +
                       std::string(key) + "'");
}

void note_change(sqlite::connection& c, file_id id) {
  sqlite::run(c, "UPDATE entry SET changed_ns = ? WHERE id = ?", now_ns(), id);
}

}  // namespace

bool call_runner::run(const calls::set_size& q, const transacted& t) const {
  if (q.size > greatest_size || q.reserved > greatest_size) refuse(EINVAL, "a file has at most 2^63 - 1 bytes");
  const std::uint64_t now = generation_of(t.c, q.id);
  if (q.generation != 0 && now > q.generation) return false;
  require_writer(t, q.id, "change its size");
  const entry e = read_entry(t.c, q.id, {});
  if (q.size != e.size) require_unpacked(e, "file number " + std::to_string(q.id));
  const std::uint64_t reserved = e.codec.empty() && q.reserved <= q.size ? 0 : q.reserved;
  if (e.array.extents.empty() && std::max(q.size, reserved) < allocated_size(e)) note_cut(t.c, q.id);
  if (reserved > q.size) use_feature(t.c, feature_reserved);
  sqlite::run(t.c,
              "UPDATE entry SET size = ?, extents = ?, changed_ns = ?, generation = ?, reserved = ?"
              " WHERE id = ?",
              q.size, numbers_to_text(q.extents), now_ns(), std::max(now, q.generation), reserved, q.id);
  note_reached(t.c, q.id, q.extents);
  return true;
}

bool call_runner::run(const calls::set_generation& q, const transacted& t) const {
  const std::uint64_t now = generation_of(t.c, q.id);
  if (q.generation > now + 1)
    refuse(EINVAL, "file number " + std::to_string(q.id) + ": generation " + std::to_string(q.generation) +
                       " cannot follow " + std::to_string(now));
  require_writer(t, q.id, "open it for writing");
  if (now >= q.generation) return true;  // another opened it at the same time, and said so durably
  const entry e = read_entry(t.c, q.id, {});
  if (has_new_objects(e.striping, q.allocated, allocated_size(e))) return false;
  sqlite::run(t.c, "UPDATE entry SET generation = ? WHERE id = ?", q.generation, q.id);
  return true;
}

nothing call_runner::run(const calls::set_in_progress& q, const transacted& t) const {
  (void)generation_of(t.c, q.id);  // the file is there
  require_writer(t, q.id, "write it");
  sqlite::run(t.c, "UPDATE entry SET in_progress = ? WHERE id = ?", q.what, q.id);
  return {};
}

entry call_runner::run(const calls::change& q, const transacted& t) const {
  const entry_change& what = q.what;
  const path_resolution::node n = t.walk.resolve(q.where);
  const std::string path = t.walk.path_of(q.where, n), name = storage::in_quotes(path);
  if (what.mode || what.owner || what.group || what.empty()) {
    const std::uint32_t owner = what.owner.value_or(n.owner), group = what.group.value_or(n.group);
    if (who_.uid != 0 && who_.uid != n.owner)
      refuse(EACCES,
             name + ": only its owner (user " + std::to_string(n.owner) + ") may change its mode, owner or group");
    // As POSIX has it for the unprivileged.
    if (who_.uid != 0 && owner != n.owner)
      refuse(EPERM, name + ": only user 0 may give it to user " + std::to_string(owner));
    if (who_.uid != 0 && group != n.group && !is_member(who_, group))
      refuse(EPERM, name + ": user " + std::to_string(who_.uid) + " may give it to a group of his own only (" +
                        std::to_string(who_.gid) + "), not to " + std::to_string(group));
    sqlite::run(t.c, "UPDATE entry SET owner = ?, grp = ?, mode = ? WHERE id = ?", owner, group,
                what.mode.value_or(n.mode) & 07777, n.id);
  }
  if (what.data_changed_ns || what.data_read_ns || what.size_at_least) {
    if (who_.uid != n.owner) t.walk.require(n, may_write, path, "change its size or times");
    if (what.data_changed_ns)
      sqlite::run(t.c, "UPDATE entry SET data_changed_ns = ? WHERE id = ?", *what.data_changed_ns, n.id);
    if (what.data_read_ns) sqlite::run(t.c, "UPDATE entry SET data_read_ns = ? WHERE id = ?", *what.data_read_ns, n.id);
  }
  if (what.size_at_least) {
    const entry now = read_entry(t.c, n.id, path);
    if (now.kind != entry_kind::file || !now.array.extents.empty())
      refuse(EINVAL, name + ": only a plain file gets longer by being written");
    if (*what.size_at_least > allocated_size(now))
      refuse(EINVAL,
             name + ": " + std::to_string(*what.size_at_least) + " bytes are more than its stripe objects have");
    // Reserved bytes stay reserved, whether visible or not.
    if (*what.size_at_least > now.size)
      sqlite::run(t.c, "UPDATE entry SET size = ?, reserved = ? WHERE id = ?", *what.size_at_least,
                  now.reserved > *what.size_at_least ? now.reserved : 0, n.id);
  }
  note_change(t.c, n.id);
  return read_entry(t.c, n.id, path);
}

nothing call_runner::run(const calls::set_attribute& q, const transacted& t) const {
  const path_resolution::node n = t.walk.resolve(q.where);
  const std::string path = t.walk.path_of(q.where, n);
  t.walk.require(n, may_write, path, "change its attributes");
  if (lists_nodes(n, q.key)) {
    require_owner_of_store(who_, n, q.key);
    node_list nodes = nodes_from_text(q.value);
    if (q.key == retired_key) require_unused(t.c, std::move(nodes));
  }
  if (q.where.path.empty() && (q.key == striping_key || q.key == type_key))
    put_own_attribute(t.c, read_entry(t.c, n.id, path), q.key, q.value);
  else
    put_attribute(t.c, n.id, q.key, q.value, path);
  note_change(t.c, n.id);
  return {};
}

nothing call_runner::run(const calls::remove_attribute& q, const transacted& t) const {
  const path_resolution::node n = t.walk.resolve(q.where);
  const std::string path = t.walk.path_of(q.where, n);
  t.walk.require(n, may_write, path, "change its attributes");
  if (lists_nodes(n, q.key)) require_owner_of_store(who_, n, q.key);
  sqlite::run(t.c, "DELETE FROM attribute WHERE entry = ? AND key = ?", n.id, q.key);
  if (t.c.changes() == 0)
    refuse(q.where.path.empty() ? ENODATA : ENOENT, storage::in_quotes(path) + " has no attribute '" + q.key + "'");
  note_change(t.c, n.id);
  return {};
}

}  // namespace ooc::storage
