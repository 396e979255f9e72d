#include "storage/client/remote_metadata_by_id.hpp"

#include "storage/client/metadata_client.hpp"
#include "storage/wire/metadata_messages.hpp"

namespace ooc::storage {

namespace pb = wire::pb;

namespace {

pb::Call about(pb::Operation op, const place& at) {
  pb::Call c;
  c.set_op(op);
  c.set_folder(at.folder);
  c.set_path(at.name);
  return c;
}

void set_to(pb::Call& c, const place& to) {
  c.set_to_folder(to.folder);
  c.set_to(to.name);
}

}  // namespace

entry remote_metadata_by_id::stat(file_id id) {
  pb::Call c = call_about(pb::OP_STAT, id);
  return wire::read_entry(link_->call(c).entry());
}

entry remote_metadata_by_id::look_in(const place& at) {
  pb::Call c = about(pb::OP_LOOK_IN, at);
  return wire::read_entry(link_->call(c).entry());
}

folder_part remote_metadata_by_id::list_in(file_id folder, std::string_view after) {
  pb::Call c = about(pb::OP_LIST_IN, place{folder, ""});
  c.set_after(after.data(), after.size());
  const pb::Answer a = link_->call(c);
  folder_part part;
  for (const pb::Entry& e : a.entries()) part.entries.push_back(wire::read_entry(e));
  part.more = a.more() && !part.entries.empty();
  return part;
}

entry remote_metadata_by_id::make(const place& at, const new_entry& what) {
  pb::Call c = about(pb::OP_MAKE, at);
  wire::write_new_entry(what, *c.mutable_made());
  return wire::read_entry(link_->call(c).entry());
}

entry remote_metadata_by_id::link(file_id id, const place& at) {
  pb::Call c = call_about(pb::OP_LINK, id);
  set_to(c, at);
  return wire::read_entry(link_->call(c).entry());
}

entry remote_metadata_by_id::unlink(const place& at, bool folder) {
  pb::Call c = about(pb::OP_UNLINK, at);
  c.set_is_folder(folder);
  return wire::read_entry(link_->call(c).entry());
}

entry remote_metadata_by_id::move(const place& from, const place& to, bool replace) {
  pb::Call c = about(pb::OP_MOVE, from);
  set_to(c, to);
  c.set_replace(replace);
  const pb::Answer a = link_->call(c);
  return a.has_entry() ? wire::read_entry(a.entry()) : entry();
}

entry remote_metadata_by_id::change(file_id id, const entry_change& what) {
  pb::Call c = call_about(pb::OP_CHANGE, id);
  wire::write_change(what, *c.mutable_change());
  return wire::read_entry(link_->call(c).entry());
}

void remote_metadata_by_id::set_attribute(file_id id, std::string_view key, std::string_view value) {
  pb::Call c = call_about(pb::OP_SET_ATTRIBUTE_OF, id);
  c.set_key(key.data(), key.size());
  c.set_value(value.data(), value.size());
  link_->call(c);
}

void remote_metadata_by_id::remove_attribute(file_id id, std::string_view key) {
  pb::Call c = call_about(pb::OP_REMOVE_ATTRIBUTE_OF, id);
  c.set_key(key.data(), key.size());
  link_->call(c);
}

}  // namespace ooc::storage
