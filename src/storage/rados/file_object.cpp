#include "storage/rados/file_object.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "storage/rados/object_attributes.hpp"

namespace ooc::storage {

namespace {

constexpr std::size_t digits = 16;
constexpr const char* writes_since_attribute = "oocarray.writes_since";

std::string hexadecimal(std::uint64_t n) {
  std::array<char, digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(n));
  return text.data();
}

bool take(std::string_view& text, std::string_view word) {
  const bool there = text.starts_with(word);
  if (there) text.remove_prefix(word.size());
  return there;
}

bool take_number(std::string_view& text, std::uint64_t& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

/// "name N\n", of which the number is taken.
bool take(std::string_view& text, std::string_view name, std::uint64_t& to) {
  return take(text, name) && take_number(text, to) && take(text, "\n");
}

bool take_rank(std::string_view name, std::string_view text, file_rank& r) {
  r.attribute = name;
  if (!take_number(text, r.claim.since)) return false;
  r.claim.alone = take(text, " alone ");
  if (!r.claim.alone && !take(text, " together ")) return false;
  r.address = text;
  return true;
}

}  // namespace

std::string object_name(file_id id) { return hexadecimal(id); }

std::string object_name(file_id id, std::uint64_t number) { return hexadecimal(id) + "." + hexadecimal(number); }

file_id file_of(const std::string& object_name) {
  if (object_name.size() != digits && (object_name.size() != 2 * digits + 1 || object_name[digits] != '.')) return 0;
  file_id id = 0;
  const char* const end = object_name.data() + digits;
  const auto parsed = std::from_chars(object_name.data(), end, id, 16);
  return parsed.ec == std::errc() && parsed.ptr == end ? id : 0;
}

std::string text_of(const file_object& f) {
  std::string text = "oocarray file 1\nsize " + std::to_string(f.size) + "\nobject " + std::to_string(f.object) +
                     "\ncuts " + std::to_string(f.cuts) + "\n";
  if (const auto& c = f.commits)
    text += "commit " + std::to_string(c->number) + "\nsnapshot " + std::to_string(c->snapshot) + "\nnext " +
            std::to_string(c->next) + "\nwritten " + std::to_string(c->written ? 1 : 0) + "\n";
  return text;
}

std::string text_of(const file_rank& r) {
  return std::to_string(r.claim.since) + (r.claim.alone ? " alone " : " together ") + r.address;
}

bool parse(const std::string& text, file_object& f) {
  std::string_view rest = text;
  f.commits.reset();
  if (!take(rest, "oocarray file 1\nsize ", f.size) || !take(rest, "object ", f.object) ||
      !take(rest, "cuts ", f.cuts) || f.object == 0)
    return false;
  if (rest.empty()) return true;
  commit_snapshots c;
  std::uint64_t written = 0;
  if (!take(rest, "commit ", c.number) || !take(rest, "snapshot ", c.snapshot) || !take(rest, "next ", c.next) ||
      !take(rest, "written ", written) || !rest.empty())
    return false;
  c.written = written != 0;
  f.commits = c;
  return true;
}

namespace {

struct object_answer {
  explicit object_answer(const librados& calls) : attributes(calls) {}

  /// 0, or a negative errno.
  int find(file_object& f) {
    if (result < 0) return result;
    if (!parse({bytes.data(), length}, f)) return -EBADMSG;
    bool good = true;
    const int rc = attributes.for_each([&](std::string_view name, std::string_view value) {
      if (name == writes_since_attribute) good &= take_number(value, f.writes_since.emplace()) && value.empty();
      if (name.starts_with(rank_prefix)) good &= take_rank(name, value, f.ranks.emplace_back());
    });
    return rc < 0 ? rc : good ? 0 : -EBADMSG;
  }

  std::array<char, 256> bytes{};
  std::size_t length = 0;
  int result = 0;
  object_attributes attributes;
};

}  // namespace

void read_file_object(rados_pool& pool, file_id id, const std::string& what,
                      std::function<void(int, const file_object&)> found) {
  const auto a = std::make_shared<object_answer>(pool.calls());
  pool.read(
      object_name(id), a->bytes.size(), what,
      [&calls = pool.calls(), a](rados_read_op_t op) {
        calls.read_op_read(op, 0, a->bytes.size(), a->bytes.data(), &a->length, &a->result);
        a->attributes.read_by(op);
      },
      [a, found = std::move(found)](int rc) {
        file_object f;
        if (rc >= 0) rc = a->find(f);
        found(rc, f);
      });
}

void write_file_object(rados_pool& pool, file_id id, const file_object& f, bool fresh, const std::string& what,
                       rados_pool::end ended) {
  pool.write(
      object_name(id), 0, what,
      [&calls = pool.calls(), text = text_of(f), since = f.writes_since, fresh](rados_write_op_t op) {
        if (fresh) calls.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
        calls.write_op_write_full(op, text.data(), text.size());
        if (!since) return;
        const std::string value = std::to_string(*since);
        calls.write_op_setxattr(op, writes_since_attribute, value.data(), value.size());
      },
      std::move(ended));
}

}  // namespace ooc::storage
