#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>

#include <cerrno>
#include <charconv>
#include <ctime>
#include <iostream>
#include <sstream>

#include "base/command.hpp"
#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/wire/access_key.hpp"
#include "storage/wire/revocations.hpp"

namespace ooc::tool {

namespace {

constexpr std::size_t most_groups = 32;

bool is_number(const std::string& text, std::uint32_t& n) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), n);
  return !text.empty() && r.ec == std::errc() && r.ptr == text.data() + text.size();
}

std::vector<std::uint32_t> groups_of(const passwd& user) {
  std::vector<gid_t> all(most_groups + 1);
  auto n = static_cast<int>(all.size());
  // The usual group comes first.
  if (::getgrouplist(user.pw_name, user.pw_gid, all.data(), &n) < 0 || n > int{most_groups})
    throw usage_mistake("user '" + std::string(user.pw_name) + "' is in more than " + std::to_string(most_groups) +
                        " groups; name those that count in the store: --groups GID,GID...");
  return {all.begin(), all.begin() + n};
}

std::vector<std::uint32_t> read_groups(const std::string& text) {
  std::vector<std::uint32_t> groups;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) {
    std::uint32_t gid = 0;
    if (!is_number(one, gid)) {
      const group* known = ::getgrnam(one.c_str());
      if (known == nullptr) throw usage_mistake("--groups: group '" + one + "' is not known on this machine");
      gid = known->gr_gid;
    }
    groups.push_back(gid);
  }
  return groups;
}

/// By name or number; nullptr where this machine does not know it, and then `uid` is the number, if it is one.
const passwd* user_of(const std::string& text, bool& number, std::uint32_t& uid) {
  number = is_number(text, uid);
  return number ? ::getpwuid(uid) : ::getpwnam(text.c_str());
}

/// A user by name or number; one that this machine does not know needs a number and groups.
wire::key_user named(const command_line& line) {
  const std::string text = line.text("user");
  wire::key_user u;
  bool number = false;
  const passwd* known = user_of(text, number, u.uid);
  if (line.has("groups")) u.groups = read_groups(line.text("groups"));
  if (known == nullptr && (!number || u.groups.empty()))
    throw usage_mistake("user '" + text +
                        "' is not known on this machine; give the number and the groups that the user has "
                        "in the store: --user UID --groups GID,GID...");
  u.name = known == nullptr ? "uid" + text : known->pw_name;
  if (known == nullptr) return u;
  u.uid = known->pw_uid;
  if (u.groups.empty()) u.groups = groups_of(*known);
  return u;
}

int run_keygen(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("FILE");
  line.option()("user", po::value<std::string>()->value_name("NAME|UID"),
                "make a key of this user, who may act for nobody else, from the cluster key");
  line.option()("groups", po::value<std::string>()->value_name("G,G"),
                "with --user: the groups, the usual one first; otherwise those of this machine");
  line.key_option();
  if (!line.parse(arguments)) return success;
  const std::string file = line.required("FILE");
  if (!line.has("user")) {
    if (line.has("groups") || line.has("key"))
      throw usage_mistake("--groups and --key go with --user: a cluster key names nobody");
    wire::access_key::random()->write(file);
  } else {
    const wire::key_ptr cluster = wire::find_key(line.text_or("key", ""));
    if (!cluster)
      throw usage_mistake(
          "a user's key is made from the cluster key, and there is none: name its file "
          "with --key FILE");
    // A key of the second in which others were revoked would be one of those.
    const wire::key_user user = named(line);
    const auto revoked = wire::revocations::read(wire::revocations_of(wire::find_key_file(line.text_or("key", ""))));
    cluster->for_user(user, revoked.until(user.uid) + 1)->write(file);
  }
  std::cout << file << "\n";
  return success;
}

int run_revoke(const command& self, const std::vector<std::string>& arguments) {
  command_line line(self);
  line.positional("USER");
  line.key_option();
  if (!line.parse(arguments)) return success;
  const std::string user = line.required("USER");
  bool number = false;
  std::uint32_t uid = 0;
  if (const passwd* known = user_of(user, number, uid))
    uid = known->pw_uid;
  else if (!number)
    throw usage_mistake("user '" + user + "' is not known on this machine; give the user's number");
  const auto key_file = wire::find_key_file(line.text_or("key", ""));
  if (key_file.empty())
    throw usage_mistake(
        "the list of revoked keys is beside the metadata server's cluster key, and there is no "
        "key here: name its file with --key FILE");
  if (const auto key = wire::access_key::read(key_file); !key->of_cluster())
    throw usage_mistake("'" + key_file.string() + "' is the key of user " + key->holder().user->name +
                        "; the list of revoked keys is beside the cluster key");
  // Two that revoke at once: neither's user is lost.
  const storage::file_descriptor lock(::open(key_file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0)
    throw io_error({errno, std::generic_category()}, "'" + key_file.string() + "' cannot be locked");
  const auto list = wire::revocations_of(key_file);
  auto revoked = wire::revocations::read(list);
  revoked.add(uid, std::time(nullptr));
  revoked.write(list);
  std::cout << list.string() << "\n";
  return success;
}

}  // namespace

const command revoke{"revoke", "revoke [--key FILE] NAME|UID",
                     "Revokes all keys of a user that were made until now: writes FILE.revoked, which the "
                     "metadata server reads.",
                     run_revoke};

const command keygen{"keygen", "keygen [--user NAME|UID [--groups G,G] [--key FILE]] FILE",
                     "Makes a cluster key, which every server needs a copy of, or a user's key from it "
                     "(mode 600).",
                     run_keygen};

}  // namespace ooc::tool
