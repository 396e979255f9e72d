// ooc chmod, ooc chown: who may do what, as in POSIX.
#include <grp.h>
#include <pwd.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/command.hpp"
#include "storage/base/file_access.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// Calls f for the entry, and with -r for what is below it: after it, or, `inside_first`, before it.
template <class F>
void walk(storage::metadata_service& metadata, const entry& e, bool recursive, bool inside_first, const F& f) {
  std::vector<entry> below;
  if (!inside_first) f(e);
  if (recursive && e.kind == entry_kind::folder) below = metadata.list(e.path);
  for (const entry& b : below) walk(metadata, b, recursive, inside_first, f);
  if (inside_first) f(e);
}

[[noreturn]] void no_mode(const std::string& text) {
  throw usage_mistake("'" + text +
                      "' is not a mode; write three octal digits, for instance 640, or changes, "
                      "for instance u+rw,g-w");
}

/// One change of a symbolic mode: whose bits, what becomes of them, and which.
struct mode_change {
  std::uint32_t whose = 0;  ///< 0700, 0070 and 0007 together
  char how = '=';           ///< '+', '-' or '='
  std::uint32_t bits = 0;   ///< as for others: 4, 2, 1
  bool enter = false;       ///< X: like x for folders, and for files that somebody executes
  char like = 0;            ///< 'u', 'g' or 'o': the bits that these have
};

/// "640", or "u=rw,g-w+x,a+X" as chmod(1) has it.
std::vector<mode_change> mode_changes(const std::string& text) {
  std::uint32_t octal = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), octal, 8);
  if (r.ec == std::errc() && r.ptr == text.data() + text.size()) {
    if (octal > 0777) no_mode(text);
    return {{0700, '=', octal >> 6, false, 0}, {0070, '=', octal >> 3 & 7, false, 0}, {0007, '=', octal & 7, false, 0}};
  }
  std::vector<mode_change> all;
  for (std::size_t at = 0;; ++at) {
    mode_change c;
    for (; at < text.size() && std::string_view("ugoa").find(text[at]) != std::string_view::npos; ++at)
      c.whose |= text[at] == 'u' ? 0700 : text[at] == 'g' ? 0070 : text[at] == 'o' ? 0007 : 0777;
    // Nobody named: everybody, but for what the umask keeps back.
    if (c.whose == 0) c.whose = 0777 & ~storage::process_umask();
    if (at == text.size()) no_mode(text);
    while (at < text.size() && text[at] != ',') {
      c.how = text[at++];
      if (c.how != '+' && c.how != '-' && c.how != '=') no_mode(text);
      c.bits = 0;
      c.enter = false;
      c.like = 0;
      for (; at < text.size() && std::string_view("rwxXugo").find(text[at]) != std::string_view::npos; ++at) {
        const char b = text[at];
        if (b == 'u' || b == 'g' || b == 'o') c.like = b;
        if (b == 'r') c.bits |= 4;
        if (b == 'w') c.bits |= 2;
        if (b == 'x') c.bits |= 1;
        if (b == 'X') c.enter = true;
      }
      all.push_back(c);
    }
    if (at == text.size()) return all;
  }
}

std::uint32_t changed(std::uint32_t mode, bool folder, const std::vector<mode_change>& changes) {
  for (const mode_change& c : changes) {
    std::uint32_t bits = c.bits;
    if (c.enter && (folder || (mode & 0111) != 0)) bits |= 1;
    if (c.like != 0) bits |= mode >> (c.like == 'u' ? 6 : c.like == 'g' ? 3 : 0) & 7;
    const std::uint32_t meant = (bits << 6 | bits << 3 | bits) & c.whose;
    if (c.how == '+') mode |= meant;
    if (c.how == '-') mode &= ~meant;
    if (c.how == '=') mode = (mode & ~c.whose) | meant;
  }
  return mode;
}

/// A number, or what `known` says that a name is.
template <class Known>
std::uint32_t id(const std::string& text, const char* what, const Known& known) {
  std::uint32_t n = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  if (!text.empty() && r.ec == std::errc() && r.ptr == text.data() + text.size() && n != storage::keep_id) return n;
  if (const std::optional<std::uint32_t> named = known(text.c_str())) return *named;
  throw usage_mistake("'" + text + "' is no " + what +
                      " of this host; write USER, USER:GROUP or :GROUP, by "
                      "name or in numbers (`id -u`, `id -g`)");
}

std::uint32_t user_id(const std::string& text) {
  return id(text, "user", [](const char* name) -> std::optional<std::uint32_t> {
    if (const passwd* p = ::getpwnam(name)) return p->pw_uid;
    return {};
  });
}

std::uint32_t group_id(const std::string& text) {
  return id(text, "group", [](const char* name) -> std::optional<std::uint32_t> {
    if (const group* g = ::getgrnam(name)) return g->gr_gid;
    return {};
  });
}

int run_chmod(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with everything in them");
  line.positional("MODE");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const auto changes = mode_changes(line.required("MODE"));
  const auto all = line.locate_all("PATH");
  // The contents come first where the folder is closed to its owner.
  const bool closes = (changed(0700, true, changes) & 0500) != 0500;
  for (const auto& [store, path] : all) {
    auto& metadata = store.core()->metadata();
    const auto& core = store.core();
    walk(metadata, metadata.lookup(path), line.recursive(), closes, [&](const entry& e) {
      core->set_mode(e.path, changed(e.mode, e.kind == entry_kind::folder, changes) & 07777);
    });
  }
  return success;
}

int run_chown(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.recursive_option("folders with everything in them");
  line.positional("OWNER");
  line.positional("PATH", true);
  if (!line.parse(arguments)) return success;
  const std::string text = line.required("OWNER");
  const auto colon = text.find(':');
  const std::string user = text.substr(0, colon);
  std::uint32_t uid = storage::keep_id, gid = storage::keep_id;
  if (!user.empty()) uid = user_id(user);
  if (colon != text.npos) gid = group_id(text.substr(colon + 1));
  if (user.empty() && colon == text.npos) (void)user_id("");
  const auto all = line.locate_all("PATH");
  for (const auto& [store, path] : all) {
    auto& metadata = store.core()->metadata();
    const auto& core = store.core();
    walk(metadata, metadata.lookup(path), line.recursive(), true,
         [&](const entry& e) { core->set_owner(e.path, uid, gid); });
  }
  return success;
}

}  // namespace

const command chmod{"chmod", "chmod [-r] MODE PATH...", "Changes who may read and write: 640, or u+rw,g-w.", run_chmod};
const command chown{"chown", "chown [-r] [USER][:GROUP] PATH...", "Changes owner and group, by name or number.",
                    run_chown};

}  // namespace ooc::tool
