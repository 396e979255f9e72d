// ooc chmod, ooc chown: who may do what, by numbers as in POSIX.
#include <charconv>

#include "command.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// Calls f for the entry, and with -r for what is below it: after it, or, `inside_first`, before it.
template <class F>
void walk(storage::metadata_service& metadata, const entry& e, bool recursive, bool inside_first,
          const F& f) {
  std::vector<entry> below;
  if (recursive && e.kind == entry_kind::folder) below = metadata.list(e.path);
  if (!inside_first) f(e);
  for (const entry& b : below) walk(metadata, b, recursive, inside_first, f);
  if (inside_first) f(e);
}

std::uint32_t id(const std::string& text, const std::string& whole) {
  std::uint32_t n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || r.ec != std::errc() || r.ptr != text.data() + text.size() ||
      n == storage::keep_id)
    throw usage_mistake("'" + whole + "' names no owner; write USER, USER:GROUP or :GROUP in numbers "
                        "(`id -u`, `id -g`): a store knows no names");
  return n;
}

int run_chmod(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("recursive,r", "folders with everything in them");
  line.positional("MODE");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const std::string text = line.required("MODE");
  std::uint32_t mode = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (text.empty() || r.ec != std::errc() || r.ptr != text.data() + text.size() || mode > 0777)
    throw usage_mistake("'" + text + "' is not a mode; write three octal digits, for instance 640");
  const auto paths = line.texts("PATH");
  if (paths.empty()) line.required("PATH");
  const ooc::store store = line.open_store();
  auto& metadata = store.core()->metadata();
  // What is inside comes first where the folder is closed to its owner.
  const bool closes = (mode & 0500) != 0500;
  for (const std::string& path : paths)
    walk(metadata, metadata.lookup(path), line.has("recursive"), closes,
         [&](const entry& e) { metadata.set_mode(e.path, mode); });
  return success;
}

int run_chown(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.option()("recursive,r", "folders with everything in them");
  line.positional("OWNER");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const std::string text = line.required("OWNER");
  const auto colon = text.find(':');
  const std::string user = text.substr(0, colon);
  std::uint32_t uid = storage::keep_id, gid = storage::keep_id;
  if (!user.empty()) uid = id(user, text);
  if (colon != text.npos) gid = id(text.substr(colon + 1), text);
  if (user.empty() && colon == text.npos) (void)id("", text);
  const auto paths = line.texts("PATH");
  if (paths.empty()) line.required("PATH");
  const ooc::store store = line.open_store();
  auto& metadata = store.core()->metadata();
  for (const std::string& path : paths)
    walk(metadata, metadata.lookup(path), line.has("recursive"), true,
         [&](const entry& e) { metadata.set_owner(e.path, uid, gid); });
  return success;
}

}  // namespace

const command chmod{"chmod", "chmod [-r] MODE PATH...",
                    "Changes who may read and write, in octal (640).", run_chmod};
const command chown{"chown", "chown [-r] [USER][:GROUP] PATH...",
                    "Changes owner and group, in numbers.", run_chown};

}  // namespace ooc::tool
