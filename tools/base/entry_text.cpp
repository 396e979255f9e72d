#include "base/entry_text.hpp"

#include <cstdio>
#include <ctime>
#include <iostream>

namespace ooc::tool {

std::string printable(const std::string& name) {
  // Besides those of ASCII, U+0080 to U+009F, which in UTF-8 begin with C2.
  const auto is_control = [&](std::size_t i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c < 0x20 || c == 0x7f) return true;
    const auto next = i + 1 < name.size() ? static_cast<unsigned char>(name[i + 1]) : 0;
    return c == 0xc2 && next >= 0x80 && next < 0xa0;
  };
  bool any = false;
  for (std::size_t i = 0; i < name.size(); ++i) any = any || is_control(i);
  if (!any) return name;
  std::string shown;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_control(i)) {
      shown += name[i] == '\\' ? "\\\\" : std::string(1, name[i]);
      continue;
    }
    for (std::size_t n = static_cast<unsigned char>(name[i]) == 0xc2 ? 2 : 1; n != 0; --n) {
      char text[8];
      std::snprintf(text, sizeof text, "\\x%02x", static_cast<unsigned char>(name[i]));
      shown += text;
      if (n == 2) ++i;
    }
  }
  return shown;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string s;
  for (const std::uint64_t n : shape) s += (s.empty() ? "" : "x") + std::to_string(n);
  return s;
}

static const char* kind_text(storage::entry_kind kind) {
  constexpr const char* names[] = {"folder",           "file",        "symbolic link", "FIFO", "socket",
                                   "character device", "block device"};
  return names[static_cast<std::size_t>(kind) - 1];
}

std::string describe(const storage::entry& e) {
  if (e.kind != storage::entry_kind::file) return kind_text(e.kind);
  if (e.array.extents.empty()) return std::to_string(e.size) + " bytes";
  std::string s =
      (e.array.element_type.empty() ? std::to_string(e.array.element_size) + "-byte records" : e.array.element_type) +
      " " + shape_text(e.array.extents);
  if (!e.array.tile.empty()) s += " in tiles of " + shape_text(e.array.tile);
  if (has_reserved_grid(e.array)) s += ", up to " + shape_text(e.array.max_extents);
  if (e.commit) s += ", commit " + std::to_string(e.commit->number);
  if (!e.codec.empty()) s += ", packed (" + e.codec + ")";
  return s;
}

std::string mode_text(const storage::entry& e) {
  std::string s(1, "?d-lpscb"[static_cast<std::size_t>(e.kind)]);
  for (int bit = 8; bit >= 0; --bit) s += e.mode >> bit & 1 ? "xwr"[bit % 3] : '-';
  return s;
}

std::string time_text(std::int64_t ns) {
  const std::time_t seconds = static_cast<std::time_t>(ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
  return text;
}

nlohmann::json to_json(const storage::entry& e) {
  nlohmann::json j{
      {"path", e.path}, {"kind", kind_text(e.kind)},  {"owner", e.owner},           {"group", e.group},
      {"mode", e.mode}, {"created_ns", e.created_ns}, {"changed_ns", e.changed_ns}, {"attributes", e.attributes}};
  if (e.kind != storage::entry_kind::file) return j;
  j["id"] = e.id;
  j["size"] = e.size;
  j["striping"] = {{"sn", e.striping.sn}, {"nn", e.striping.nn}, {"sf", e.striping.sf}};
  j["sparse"] = e.sparse;
  if (!e.array.extents.empty()) {
    j["element_type"] = e.array.element_type;
    j["element_size"] = e.array.element_size;
    j["extents"] = e.array.extents;
    if (!e.array.tile.empty()) j["tile"] = e.array.tile;
    if (!e.array.max_extents.empty()) j["max_extents"] = e.array.max_extents;
  }
  if (!e.codec.empty()) {
    j["codec"] = e.codec;
    j["packed_size"] = e.reserved;
  }
  if (e.commit)
    j["commit"] = {{"number", e.commit->number}, {"time_ns", e.commit->time_ns}, {"attributes", e.commit->attributes}};
  return j;
}

void print(const nlohmann::json& j) {
  std::cout << j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace ooc::tool
