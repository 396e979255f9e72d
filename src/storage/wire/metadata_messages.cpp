#include "storage/wire/metadata_messages.hpp"

#include <cerrno>

namespace ooc::wire {

using storage::array_description;
using storage::entry;
using storage::entry_kind;
using storage::new_file;

namespace {

[[noreturn]] void refuse(const char* why) {
  throw usage_error(errc::invalid_request, std::string("a message that cannot be meant: ") + why);
}

std::vector<std::byte> bytes_of(const std::string& s) {
  const auto* first = reinterpret_cast<const std::byte*>(s.data());
  return {first, first + s.size()};
}

/// Of a file whose striping is read: as many as it says, or none.
storage::node_list read_nodes(const auto& m) {
  if (m.nodes_size() != 0 && static_cast<std::uint32_t>(m.nodes_size()) != m.nn())
    refuse("a file that names other nodes than its striping has");
  return {m.nodes().begin(), m.nodes().end()};
}

void write_array(const array_description& a, pb::ArrayDescription& m) {
  m.set_element_type(a.element_type);
  m.set_element_size(a.element_size);
  m.mutable_extents()->Add(a.extents.begin(), a.extents.end());
  if (a.max_extents.size() > 1) {  // whether that can be is the server's to say
    m.add_tile(0);
    pb::Growth& g = *m.mutable_growth();
    g.mutable_tile()->Add(a.tile.begin(), a.tile.end());
    g.mutable_max_extents()->Add(a.max_extents.begin(), a.max_extents.end());
    g.mutable_reached()->Add(a.reached.begin(), a.reached.end());
    return;
  }
  if (!a.max_extents.empty()) m.set_max_extent(a.max_extents.front());
  m.mutable_tile()->Add(a.tile.begin(), a.tile.end());
}

array_description read_array(const pb::ArrayDescription& m) {
  array_description a;
  a.element_type = m.element_type();
  a.element_size = m.element_size();
  a.extents.assign(m.extents().begin(), m.extents().end());
  if (m.has_growth()) {
    const pb::Growth& g = m.growth();
    a.tile.assign(g.tile().begin(), g.tile().end());
    a.max_extents.assign(g.max_extents().begin(), g.max_extents().end());
    a.reached.assign(g.reached().begin(), g.reached().end());
    return a;
  }
  if (m.max_extent() != 0) a.max_extents = {m.max_extent()};
  a.tile.assign(m.tile().begin(), m.tile().end());
  return a;
}

}  // namespace

void write_attributes(const std::map<std::string, std::string>& all, attribute_messages& m) {
  for (const auto& [key, value] : all) {
    pb::Attribute& a = *m.Add();
    a.set_key(key);
    a.set_value(value);
  }
}

std::map<std::string, std::string> read_attributes(const attribute_messages& m) {
  std::map<std::string, std::string> all;
  for (const pb::Attribute& a : m) all.emplace(a.key(), a.value());
  return all;
}

void write_entry(const entry& e, pb::Entry& m) {
  m.set_id(e.id);
  m.set_kind(static_cast<std::uint32_t>(e.kind));
  m.set_path(e.path);
  m.set_owner(e.owner);
  m.set_group(e.group);
  m.set_mode(e.mode);
  m.set_created_ns(e.created_ns);
  m.set_changed_ns(e.changed_ns);
  write_attributes(e.attributes, *m.mutable_attributes());
  m.set_data_changed_ns(e.data_changed_ns);
  m.set_data_read_ns(e.data_read_ns);
  m.set_names(e.names);
  m.set_target(e.target);
  m.set_device(e.device);
  if (e.kind != entry_kind::file) return;
  m.set_reserved(e.reserved);
  m.set_codec(e.codec);
  m.set_size(e.size);
  m.set_sn(e.striping.sn);
  m.set_nn(e.striping.nn);
  m.set_sf(e.striping.sf);
  m.mutable_nodes()->Add(e.nodes.begin(), e.nodes.end());
  m.set_sparse(e.sparse);
  m.set_generation(e.generation);
  m.set_cuts(e.cuts);
  m.set_claimed_since(e.claim.since);
  m.set_alone(e.claim.alone);
  m.set_fill(e.fill.data(), e.fill.size());
  write_array(e.array, *m.mutable_array());
  m.set_at_commit(e.at_commit);
  m.mutable_left_behind()->Add(e.left_behind.begin(), e.left_behind.end());
  m.set_number(e.number);
  if (!e.commit) return;
  pb::LastCommit& commit = *m.mutable_commit();
  commit.set_number(e.commit->number);
  commit.set_time_ns(e.commit->time_ns);
  write_attributes(e.commit->attributes, *commit.mutable_attributes());
}

entry read_entry(const pb::Entry& m) {
  if (m.kind() < 1 || m.kind() > 7) refuse("an entry is of no kind that there is");
  entry e;
  e.id = m.id();
  e.kind = static_cast<entry_kind>(m.kind());
  e.path = m.path();
  e.owner = m.owner();
  e.group = m.group();
  e.mode = m.mode();
  e.created_ns = m.created_ns();
  e.changed_ns = m.changed_ns();
  e.data_changed_ns = m.data_changed_ns();
  e.data_read_ns = m.data_read_ns();
  e.names = m.has_names() ? m.names() : 1;
  e.target = m.target();
  e.device = m.device();
  e.size = m.size();
  e.reserved = m.reserved();
  e.codec = m.codec();
  e.striping = {m.sn(), m.nn(), m.sf()};
  e.nodes = read_nodes(m);
  e.sparse = m.sparse();
  e.generation = m.generation();
  e.cuts = m.cuts();
  e.claim = {m.claimed_since(), m.alone()};
  e.fill = bytes_of(m.fill());
  if (m.has_array()) e.array = read_array(m.array());
  e.attributes = read_attributes(m.attributes());
  e.at_commit = m.at_commit();
  e.left_behind.assign(m.left_behind().begin(), m.left_behind().end());
  e.number = m.number();
  if (m.has_commit()) e.commit = {m.commit().number(), m.commit().time_ns(), read_attributes(m.commit().attributes())};
  return e;
}

void write_new_file(const new_file& f, pb::NewFile& m) {
  m.set_size(f.size);
  m.set_sn(f.striping.sn);
  m.set_nn(f.striping.nn);
  m.set_sf(f.striping.sf);
  m.mutable_nodes()->Add(f.nodes.begin(), f.nodes.end());
  m.set_sparse(f.sparse);
  m.set_fill(f.fill.data(), f.fill.size());
  write_array(f.array, *m.mutable_array());
  m.set_mode(f.mode);
  m.set_finished(f.finished);
  m.set_commits(f.commits);
  m.set_commit(f.commit);
  m.set_codec(f.codec);
  m.set_packed(f.packed);
  write_attributes(f.attributes, *m.mutable_attributes());
}

new_file read_new_file(const pb::NewFile& m) {
  new_file f;
  f.size = m.size();
  f.striping = {m.sn(), m.nn(), m.sf()};
  f.nodes = read_nodes(m);
  f.sparse = m.sparse();
  f.fill = bytes_of(m.fill());
  f.array = read_array(m.array());
  f.mode = m.mode();
  f.finished = m.finished();
  f.commits = m.commits();
  f.commit = m.commit();
  f.codec = m.codec();
  f.packed = m.packed();
  f.attributes = read_attributes(m.attributes());
  return f;
}

void write_new_entry(const storage::new_entry& n, pb::NewEntry& m) {
  m.set_kind(static_cast<std::uint32_t>(n.kind));
  m.set_mode(n.mode);
  m.set_owner(n.owner);
  m.set_group(n.group);
  m.set_target(n.target);
  m.set_device(n.device);
  m.set_sn(n.striping.sn);
  m.set_nn(n.striping.nn);
  m.set_sf(n.striping.sf);
  m.mutable_nodes()->Add(n.nodes.begin(), n.nodes.end());
}

storage::new_entry read_new_entry(const pb::NewEntry& m) {
  if (m.kind() < 1 || m.kind() > 7) refuse("a new entry is of no kind that there is");
  storage::new_entry n;
  n.kind = static_cast<entry_kind>(m.kind());
  n.mode = m.mode();
  n.owner = m.owner();
  n.group = m.group();
  n.target = m.target();
  n.device = m.device();
  n.striping = {m.sn(), m.nn(), m.sf()};
  n.nodes = read_nodes(m);
  return n;
}

void write_change(const storage::entry_change& c, pb::EntryChange& m) {
  if (c.mode) m.set_mode(*c.mode);
  if (c.owner) m.set_owner(*c.owner);
  if (c.group) m.set_group(*c.group);
  if (c.data_changed_ns) m.set_data_changed_ns(*c.data_changed_ns);
  if (c.data_read_ns) m.set_data_read_ns(*c.data_read_ns);
  if (c.size_at_least) m.set_size_at_least(*c.size_at_least);
}

storage::entry_change read_change(const pb::EntryChange& m) {
  storage::entry_change c;
  if (m.has_mode()) c.mode = m.mode();
  if (m.has_owner()) c.owner = m.owner();
  if (m.has_group()) c.group = m.group();
  if (m.has_data_changed_ns()) c.data_changed_ns = m.data_changed_ns();
  if (m.has_data_read_ns()) c.data_read_ns = m.data_read_ns();
  if (m.has_size_at_least()) c.size_at_least = m.size_at_least();
  return c;
}

void write_failure(const std::exception& e, pb::Failure& m) {
  if (const auto* known = dynamic_cast<const std::system_error*>(&e)) {
    write_failure(failure{known->code(), e.what()}, m);
    m.set_usage(dynamic_cast<const usage_error*>(&e) != nullptr);
  } else {
    m.set_code(dynamic_cast<const std::bad_alloc*>(&e) != nullptr ? ENOMEM : EIO);
    m.set_text(e.what());
  }
}

std::string encode_failure(const std::exception& e) {
  pb::Failure m;
  write_failure(e, m);
  if (dynamic_cast<const error*>(&e) == nullptr) m.set_text(std::string("the metadata server failed: ") + e.what());
  return m.SerializeAsString();
}

void throw_failure(std::string_view body) {
  const auto m = parse_body<pb::Failure>(body);
  const failure f = read_failure(m);
  if (m.usage()) throw usage_error(f.code, f.what);
  if (f.code == errc::corrupt || f.code == errc::torn) throw integrity_error(f.code, f.what);
  throw io_error(f.code, f.what);
}

}  // namespace ooc::wire
