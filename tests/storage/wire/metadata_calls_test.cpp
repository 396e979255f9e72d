// The calls of the metadata service on the wire, as the table in docs/wire-format.md has them.
#include "storage/wire/metadata_calls.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "oocarray/error.hpp"

using namespace ooc;
using namespace ooc::storage;

namespace {

std::string contents(const char* file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

std::uint64_t take_varint(std::string_view& m) {
  std::uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(m.at(0));
    m.remove_prefix(1);
    v |= std::uint64_t{byte & 127u} << shift;
    if (byte < 128) return v;
  }
}

/// Numbers and values of the fields that a message has; of texts and messages the length.
std::map<int, std::uint64_t> fields_of(std::string_view m) {
  std::map<int, std::uint64_t> fields;
  while (!m.empty()) {
    const std::uint64_t tag = take_varint(m);
    const std::uint64_t value = fields[static_cast<int>(tag / 8)] = take_varint(m);
    if (tag % 8 == 2) m.remove_prefix(value);
  }
  return fields;
}

/// Names by number in a block of metadata.proto.
std::map<int, std::string> names_in(const std::string& block) {
  static const std::string schema = contents(OOC_METADATA_SCHEMA);
  const auto begin = schema.find("\n" + block + " {");
  const std::string body = schema.substr(begin, schema.find("\n}", begin) - begin);
  static const std::regex line(R"(\n[^/\n]*?(\w+) = (\d+);)");
  std::map<int, std::string> names;
  for (std::sregex_iterator i(body.begin(), body.end(), line), end; i != end; ++i) names[std::stoi((*i)[2])] = (*i)[1];
  return names;
}

std::string listed(const std::map<int, std::uint64_t>& fields, const std::string& block) {
  std::string text;
  for (const auto& field : fields) text += (text.empty() ? "`" : ", `") + names_in(block).at(field.first) + "`";
  return text;
}

/// One of each call with everything that it can say, in each way in which it is sent.
std::vector<wire::any_call> one_of_each() {
  const place path("a/b"), id(7), name(7, "c");
  const new_file file{.size = 1,
                      .striping = {},
                      .fill = {},
                      .array = {},
                      .attributes = {{"key", "value"}},
                      .codec = "gzip:3/4096",
                      .packed = 1};
  entry_change both = owner_change(1, 2);
  both.mode = 0600;
  using enum file_state;
  return {calls::lookup{path},
          calls::lookup{id},
          calls::lookup{name},
          calls::open{path, true, true},
          calls::find{7, storage::right_read, true},
          calls::list{path, "c"},
          calls::list{id, "c"},
          calls::ids{committed, 7},
          calls::ids{unfinished, 7},
          calls::ids{dead, 7},
          calls::capability{7, storage::right_resize, 8},
          calls::capability{7, storage::right_remove},
          calls::sync{},
          wire::take_lease{1, 7, wire::lease_kind::size},
          wire::drop_lease{1, true},
          wire::goodbye{},
          calls::create{path, file},
          calls::commit{7},
          calls::abandon{7},
          calls::forget{7},
          calls::make_folder{path, 0755, true},
          calls::make{name, {}},
          calls::link{7, name},
          calls::move{path, "d", false},
          calls::move{name, name, true},
          calls::remove{path},
          calls::unlink{name, true},
          calls::set_size{7, 8, {8}, 9, 10},
          calls::set_generation{7, 9, 10},
          calls::set_in_progress{7, "sorted"},
          calls::decide{{{7, 8}}, 9, {{"k", "v"}}},
          calls::roll_back{7},
          calls::take_over{7, 8, 9},
          calls::change{id, both},
          calls::change{path, mode_change(0600)},
          calls::change{path, owner_change(1, 2)},
          calls::set_attribute{path, "k", "v"},
          calls::set_attribute{id, "k", "v"},
          calls::remove_attribute{path, "k"},
          calls::remove_attribute{id, "k"}};
}

/// A reply to it that says everything.
std::string full_reply(const wire::any_call& c) {
  entry e;
  e.id = 7;
  const std::tuple all(nothing(), e, folder_part{{e}, true}, id_part{{7}, true}, true, capability_ptr());
  wire::call_reply r;
  std::visit([&]<class Call>(const Call&) { r.answer = std::get<answer_of<Call>>(all); }, c);
  if (std::holds_alternative<calls::set_generation>(c)) r.answer = false;
  if (std::holds_alternative<wire::take_lease>(c))
    r.lease = {true, true, {"somebody", std::chrono::milliseconds(1), ""}};
  return wire::encode(c, r);
}

}  // namespace

TEST_CASE("the table of calls says what each sends and what comes back") {
  const auto operations = names_in("enum Operation");
  std::map<int, std::string> rows;
  std::set<std::size_t> kinds;
  for (const wire::any_call& c : one_of_each()) {
    auto sent = fields_of(wire::encode(wire::sent_call{c}));
    const auto op = static_cast<int>(sent.extract(1).mapped());
    CHECK(wire::changes(c) == (op >= 32));
    kinds.insert(c.index());
    rows[op] = "| " + std::to_string(op) + " | `" + operations.at(op) + "` | " + listed(sent, "message Call") + " | " +
               listed(fields_of(full_reply(c)), "message Answer") + " |\n";
  }
  CHECK(kinds.size() == std::variant_size_v<wire::any_call>);
  CHECK(rows.size() == operations.size() - 1);  // all but OP_NONE
  std::string table;
  for (const auto& [op, row] : rows) table += row;
  INFO(table);
  CHECK(contents(OOC_WIRE_FORMAT_DOCUMENT).find(table) != std::string::npos);
}

TEST_CASE("a call comes back from the wire as it was sent, and so does its reply") {
  for (const wire::any_call& c : one_of_each()) {
    const std::string sent = wire::encode(wire::sent_call{c, 5, true}), reply = full_reply(c);
    const wire::sent_call received = wire::decode_call(sent);
    CAPTURE(wire::operation_name(received.operation));
    CHECK(received.what.index() == c.index());
    CHECK(wire::encode(received) == sent);
    CHECK(wire::encode(c, wire::decode_reply(c, reply)) == reply);
  }
}

TEST_CASE("an attribute of the empty path is one of the root folder, as clients of earlier releases say it") {
  const auto set = std::get<calls::set_attribute>(wire::decode_call("\x08\x28").what);
  const auto removed = std::get<calls::remove_attribute>(wire::decode_call("\x08\x29").what);
  for (const place& where : {set.where, removed.where}) {
    CHECK(where.folder == root_id);
    CHECK(where.path.empty());
  }
}

TEST_CASE("a call of an operation that is not known, or for a lease of no kind, is refused") {
  CHECK_THROWS_AS(wire::decode_call(std::string("\x08\x7f", 2)), usage_error);
  CHECK_THROWS_AS(wire::decode_call(std::string("\x08\x0b", 2)), usage_error);
  CHECK_THROWS_AS(wire::decode_call("\xff"), io_error);
}
