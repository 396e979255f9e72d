#include "storage/rados/file_object.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

namespace ooc::storage {

namespace {

constexpr std::size_t digits = 16;

std::string hexadecimal(std::uint64_t n) {
  std::array<char, digits + 1> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(n));
  return text.data();
}

/// "name N\n", of which the number is taken.
bool take(std::string_view& text, std::string_view name, std::uint64_t& to) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc() || end == text.data() + text.size() || *end != '\n') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
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

void read_file_object(rados_pool& pool, file_id id, const std::string& what,
                      std::function<void(int, const file_object&)> found) {
  struct answer {
    std::array<char, 256> bytes{};
    std::size_t length = 0;
    int result = 0;
  };
  const auto a = std::make_shared<answer>();
  pool.read(
      object_name(id), a->bytes.size(), what,
      [&calls = pool.calls(), a](rados_read_op_t op) {
        calls.read_op_read(op, 0, a->bytes.size(), a->bytes.data(), &a->length, &a->result);
      },
      [a, found = std::move(found)](int rc) {
        file_object f;
        if (rc >= 0 && a->result < 0) rc = a->result;
        if (rc >= 0) rc = parse({a->bytes.data(), a->length}, f) ? 0 : -EBADMSG;
        found(rc, f);
      });
}

void write_file_object(rados_pool& pool, file_id id, const file_object& f, bool fresh, const std::string& what,
                       rados_pool::end ended) {
  pool.write(
      object_name(id), 0, what,
      [&calls = pool.calls(), text = text_of(f), fresh](rados_write_op_t op) {
        if (fresh) calls.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
        calls.write_op_write_full(op, text.data(), text.size());
      },
      std::move(ended));
}

}  // namespace ooc::storage
