// Extended attributes: `user.NAME` is the attribute NAME of the entry, `user.ooc.*` what the store knows of a file.
#include <sys/xattr.h>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "mount/file_system.hpp"
#include "storage/layout/element_order.hpp"
#include "storage/layout/placement.hpp"
#include "storage/service/commits.hpp"

namespace ooc::mount {

using storage::entry;
using storage::entry_kind;
using storage::file_id;

namespace {

constexpr std::string_view space_of_users = "user.", own_space = "user.ooc.";

std::string numbers(const std::vector<std::uint64_t>& v) {
  std::string s;
  for (const std::uint64_t n : v) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}

/// Attributes that are not stored as such.
std::map<std::string, std::string> own_attributes(const entry& e) {
  std::map<std::string, std::string> all;
  if (e.kind != entry_kind::file) return all;
  const std::string own(own_space);
  std::vector<std::uint64_t> striping = {e.striping.sn, e.striping.nn, e.striping.sf};
  striping.insert(striping.end(), e.nodes.begin(), e.nodes.end());
  all[own + "striping"] = numbers(striping);
  if (!e.array.element_type.empty()) all[own + "type"] = e.array.element_type;
  if (e.array.extents.empty()) return all;
  all[own + "shape"] = numbers(e.array.extents);
  if (!e.array.tile.empty()) all[own + "tile"] = numbers(e.array.tile);
  return all;
}

/// As getxattr(2): size 0 asks how many bytes there are.
void reply_value(fuse_req_t req, const std::string& value, std::size_t size) {
  if (size == 0)
    fuse_reply_xattr(req, value.size());
  else if (value.size() > size)
    fuse_reply_err(req, ERANGE);
  else
    fuse_reply_buf(req, value.data(), value.size());
}

void getxattr(fuse_req_t req, fuse_ino_t ino, const char* name, std::size_t size) {
  answer_by_number(req, [&](file_system& fs) {
    const std::string_view wanted = name;
    if (!wanted.starts_with(space_of_users)) return (void)fuse_reply_err(req, EOPNOTSUPP);
    const entry e = fs.metadata().lookup(ino);
    if (wanted.starts_with(own_space)) {
      const auto own = own_attributes(e);
      const auto i = own.find(name);
      return i == own.end() ? (void)fuse_reply_err(req, ENODATA) : reply_value(req, i->second, size);
    }
    const auto i = e.attributes.find(std::string(wanted.substr(space_of_users.size())));
    if (i == e.attributes.end()) return (void)fuse_reply_err(req, ENODATA);
    reply_value(req, i->second, size);
  });
}

void listxattr(fuse_req_t req, fuse_ino_t ino, std::size_t size) {
  answer_by_number(req, [&](file_system& fs) {
    const entry e = fs.metadata().lookup(ino);
    std::string all;
    for (const auto& [key, value] : e.attributes)
      if (!storage::is_of_store(key)) all += std::string(space_of_users) + key + '\0';
    for (const auto& [key, value] : own_attributes(e)) all += key + '\0';
    reply_value(req, all, size);
  });
}

/// The key of an attribute that may be changed; otherwise has answered.
bool may_change(fuse_req_t req, std::string_view name) {
  if (!name.starts_with(space_of_users) || name.size() == space_of_users.size())
    fuse_reply_err(req, EOPNOTSUPP);
  else if (name.starts_with(own_space))
    fuse_reply_err(req, EPERM);
  else
    return true;
  return false;
}

/// Empty: the text is no list of numbers.
std::vector<std::uint64_t> numbers_of(std::string_view text) {
  std::vector<std::uint64_t> all;
  while (true) {
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc{}) return {};
    all.push_back(n);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return all;
    if (text.front() != ',') return {};
    text.remove_prefix(1);
  }
}

/// How the bytes of a file are kept, as long as it has none; its shape makes it an array.
int set_own(file_system& fs, file_id id, std::string_view key, std::string value) {
  auto& core = fs.core();
  if (key != "striping" && key != "type" && key != "shape") return EPERM;
  auto lock = fs.metadata().lock_size(id);
  const entry e = fs.metadata().lookup(id);
  if (e.kind != entry_kind::file || allocated_size(e) != 0 || !e.array.extents.empty()) return EPERM;
  if (key == "striping") {
    const std::vector<std::uint64_t> n = numbers_of(value);
    const std::size_t nodes = core.nodes().size();
    if (n.size() < 3 || (n.size() > 3 && n.size() != 3 + n[1]) || n[0] >= nodes || n[1] > nodes) return EINVAL;
    if (n[1] == 0 || n[2] == 0) return EINVAL;
    if (std::any_of(n.begin() + 3, n.end(), [&](std::uint64_t node) { return node >= nodes; })) return EINVAL;
    // The first nodes again, after the last one, are said in full.
    for (std::uint64_t i = 0; n.size() == 3 && n[0] + n[1] > nodes && i < n[1]; ++i)
      value += "," + std::to_string((n[0] + i) % nodes);
  }
  if (key != "shape") {
    fs.metadata().set_attribute(id, "ooc." + std::string(key), value);
    return 0;
  }
  const std::vector<std::uint64_t> extents = numbers_of(value);
  if (extents.empty() || extents.size() > storage::max_dimensions || e.array.element_type.empty()) return EINVAL;
  if (std::ranges::find(extents, 0U) != extents.end()) return EINVAL;
  const auto bytes = storage::bytes_of(extents, e.array.element_size);
  if (!bytes) return EFBIG;
  // A program that has it open here believes it to be a file of bytes.
  if (fs.find(id)) return EBUSY;
  lock.reset();  // resize() takes it
  (void)core.resize(core.open(id, storage::open_mode::read_write), *bytes, extents);
  return 0;
}

void setxattr(fuse_req_t req, fuse_ino_t ino, const char* name, const char* value, std::size_t size, int flags) {
  answer_by_number(req, [&](file_system& fs) {
    const bool own = std::string_view(name).starts_with(own_space);
    if (!own && !may_change(req, name)) return;
    const std::string key(name + space_of_users.size());
    if (flags != 0) {
      const entry e = fs.metadata().lookup(ino);
      const bool there = own ? own_attributes(e).count(name) != 0 : e.attributes.count(key) != 0;
      if (there && (flags & XATTR_CREATE) != 0) return (void)fuse_reply_err(req, EEXIST);
      if (!there && (flags & XATTR_REPLACE) != 0) return (void)fuse_reply_err(req, ENODATA);
    }
    int error = 0;
    if (own)
      error = set_own(fs, ino, std::string_view(name).substr(own_space.size()), {value, size});
    else
      storage::set_attribute(fs.core(), ino, key, {value, size});
    fuse_reply_err(req, error);
  });
}

void removexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  answer_by_number(req, [&](file_system& fs) {
    if (!may_change(req, name)) return;
    storage::remove_attribute(fs.core(), ino, name + space_of_users.size());
    fuse_reply_err(req, 0);
  });
}

}  // namespace

void add_attribute_calls(fuse_lowlevel_ops& ops) {
  ops.getxattr = getxattr;
  ops.listxattr = listxattr;
  ops.setxattr = setxattr;
  ops.removexattr = removexattr;
}

}  // namespace ooc::mount
