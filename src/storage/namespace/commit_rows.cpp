#include "storage/namespace/commit_rows.hpp"

#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_schema.hpp"

namespace ooc::storage {

using sqlite::query;
using sqlite::run;

namespace {

constexpr int of_the_file = 0, given_with_it = 1;

std::map<std::string, std::string> attributes_of(sqlite::connection& c, file_id id, int given) {
  std::map<std::string, std::string> all;
  query q(c, "SELECT key, value FROM committed_attribute WHERE entry = ? AND given = ?", id, given);
  while (q.next()) all.emplace(q.text(0), q.text(1));
  return all;
}

void keep_attributes(sqlite::connection& c, file_id id) {
  run(c,
      "INSERT INTO committed_attribute (entry, given, key, value, binary)"
      " SELECT entry, 0, key, value, binary FROM attribute WHERE entry = ?",
      id);
}

}  // namespace

void begin_commits(sqlite::connection& c, file_id id, std::uint64_t number) {
  use_feature(c, feature_commits);
  run(c,
      "INSERT INTO last_commit (entry, number, time_ns, size, extents)"
      " SELECT id, ?, 0, size, extents FROM entry WHERE id = ?",
      number, id);
  keep_attributes(c, id);
}

void move_commits(sqlite::connection& c, file_id next, file_id old) {
  run(c, "DELETE FROM last_commit WHERE entry = ?", next);
  run(c, "UPDATE last_commit SET entry = ? WHERE entry = ?", next, old);
  run(c, "DELETE FROM committed_attribute WHERE entry = ?", next);
  run(c, "UPDATE committed_attribute SET entry = ? WHERE entry = ?", next, old);
}

bool has_commits(sqlite::connection& c) { return has_table(c, "last_commit"); }

void read_last_commit(sqlite::connection& c, entry& e) {
  if (!has_commits(c)) return;
  query q(c, "SELECT number, time_ns FROM last_commit WHERE entry = ?", e.id);
  if (!q.next()) return;
  e.commit = {q.unsigned_integer(0), q.integer(1), attributes_of(c, e.id, given_with_it)};
}

void look_back(sqlite::connection& c, entry& e) {
  if (!e.commit) return;
  query q(c, "SELECT size, extents FROM last_commit WHERE entry = ?", e.id);
  if (!q.next()) return;
  e.size = q.unsigned_integer(0);
  e.reserved = 0;
  e.array.extents = numbers_from_text(q.text(1));
  e.attributes = attributes_of(c, e.id, of_the_file);
  e.at_commit = true;
}

void raise_commit(sqlite::connection& c, const entry& e, std::int64_t time_ns,
                  const std::map<std::string, std::string>& given) {
  run(c, "UPDATE last_commit SET number = number + 1, time_ns = ?, size = ?, extents = ? WHERE entry = ?", time_ns,
      e.size, numbers_to_text(e.array.extents), e.id);
  run(c, "DELETE FROM committed_attribute WHERE entry = ?", e.id);
  keep_attributes(c, e.id);
  for (const auto& [key, value] : given)
    run(c, "INSERT INTO committed_attribute (entry, given, key, value, binary) VALUES (?, ?, ?, ?, 0)", e.id,
        given_with_it, key, value);
}

void restore_commit(sqlite::connection& c, const entry& e) {
  run(c,
      "UPDATE entry SET reserved = 0, (size, extents) = (SELECT size, extents FROM last_commit WHERE entry = ?1)"
      " WHERE id = ?1",
      e.id);
  run(c, "DELETE FROM attribute WHERE entry = ?", e.id);
  run(c,
      "INSERT INTO attribute (entry, key, value, binary)"
      " SELECT entry, key, value, binary FROM committed_attribute WHERE entry = ? AND given = 0",
      e.id);
}

}  // namespace ooc::storage
