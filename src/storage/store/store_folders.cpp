#include "storage/store/store_folders.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/disk_format_version.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/refuse.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/placement_rows.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::storage {

namespace {

namespace fs = std::filesystem;

constexpr const char* unfinished_node_file_name = "oocarray-node.new";

[[noreturn]] void fail(const std::error_code& code, const std::string& what) { throw io_error(code, what); }

std::error_code last_error() { return {errno, std::generic_category()}; }

std::string in_quotes(const fs::path& p) { return "'" + p.string() + "'"; }

/// The contents of `oocarray-node`.
struct node_identity {
  std::string uuid;
  std::size_t index = 0;
  std::size_t count = 0;             ///< of the first folder; of others, as it was when they were made
  std::vector<std::size_t> retired;  ///< in the first folder

  bool operator==(const node_identity&) const = default;
  bool is_same_node(const node_identity& o) const { return uuid == o.uuid && index == o.index; }
};

std::string to_text(const node_identity& n) {
  std::ostringstream out;
  out << "oocarray-node " << disk_format_version << "\nstore " << n.uuid << "\nnode " << n.index << " of " << n.count
      << "\n";
  for (const std::size_t r : n.retired) out << "retired " << r << "\n";
  return out.str();
}

node_identity read_node_file(const fs::path& file) {
  std::ifstream in(file);
  if (!in) fail(last_error(), in_quotes(file) + " cannot be read");
  std::string magic, store, node, of;
  int version = 0;
  node_identity n;
  in >> magic >> version;
  if (!in || magic != "oocarray-node") refuse(errc::not_a_store, in_quotes(file) + " is damaged, or not of oocarray");
  if (version != disk_format_version) refuse_version(in_quotes(file), version, disk_format_version);
  in >> store >> n.uuid >> node >> n.index >> of >> n.count;
  if (!in || store != "store" || node != "node" || of != "of" || n.index >= n.count)
    refuse(errc::not_a_store, in_quotes(file) + " is damaged; the other folders of the store show what it should say");
  for (std::size_t r = 0; in >> node >> r && node == "retired" && r < n.count;) n.retired.push_back(r);
  return n;
}

enum class folder_kind { missing, empty, unfinished, node, foreign, lost, retired };

bool is_absent(folder_kind k) { return k == folder_kind::lost || k == folder_kind::retired; }

struct folder_state {
  folder_kind kind = folder_kind::missing;
  node_identity identity;  ///< of a node; of an unfinished one if its file is complete
  std::string stranger;    ///< a name that makes the folder foreign
};

bool is_unfinished_work(const std::string& name) {
  return name == unfinished_node_file_name || name.rfind(metadata_file_name, 0) == 0;
}

folder_state inspect(const fs::path& folder) {
  std::error_code ec;
  const fs::file_status status = fs::status(folder, ec);
  if (status.type() == fs::file_type::not_found) return {};
  if (ec) fail(ec, "folder " + in_quotes(folder) + " cannot be used");
  if (!fs::is_directory(status)) refuse(errc::not_a_store, in_quotes(folder) + " is not a folder");

  folder_state s;
  s.kind = folder_kind::empty;
  if (fs::exists(folder / node_file_name, ec)) {
    s.kind = folder_kind::node;
    s.identity = read_node_file(folder / node_file_name);
    return s;
  }
  if (ec) fail(ec, "folder " + in_quotes(folder) + " cannot be used");
  auto it = fs::directory_iterator(folder, ec);
  if (ec) fail(ec, "folder " + in_quotes(folder) + " cannot be read");
  bool has_new = false;
  for (; it != fs::directory_iterator(); it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (name == "lost+found") continue;
    if (name == unfinished_node_file_name) has_new = true;
    if (!is_unfinished_work(name))
      s.stranger = name;
    else if (s.stranger.empty() && !has_new)
      s.kind = folder_kind::unfinished;
  }
  if (ec) fail(ec, "folder " + in_quotes(folder) + " cannot be read");
  if (has_new) {
    s.kind = folder_kind::unfinished;
    try {
      s.identity = read_node_file(folder / unfinished_node_file_name);
    } catch (const error&) {
      s.identity = {};  // cut short: as good as not there
    }
  } else if (s.kind == folder_kind::unfinished) {
    s.stranger = metadata_file_name;  // a database without its node file: not ours to clear away
  }
  if (!s.stranger.empty()) s.kind = folder_kind::foreign;
  return s;
}

/// Nothing is asked of the disks of folders that are `lost`, or retired.
std::vector<folder_state> inspect(const std::vector<fs::path>& folders, const std::vector<fs::path>& lost = {}) {
  std::vector<folder_state> states;
  std::vector<std::size_t> retired;
  for (const fs::path& f : folders) {
    if (std::ranges::find(lost, f) != lost.end())
      states.push_back({folder_kind::lost, {}, {}});
    else if (std::ranges::find(retired, states.size()) != retired.end())
      states.push_back({folder_kind::retired, {}, {}});
    else
      states.push_back(inspect(f));
    if (states.size() == 1) retired = states[0].identity.retired;
  }
  return states;
}

std::string remedy_if_lost(const std::vector<fs::path>& folders, std::size_t i) {
  if (i == 0) return "; if it is lost, so are the names and shapes of the store's files: put back a copy";
  return "; if it is lost, '" + local_url(folders, {{folders[i]}}) + "' opens what is left, for reading";
}

/// The uuid if all folders are nodes of one store in order; nothing if none is; throws otherwise.
std::optional<std::string> identity_of(const std::vector<fs::path>& folders, const std::vector<folder_state>& states) {
  for (std::size_t i = 0; i < folders.size(); ++i)
    if (states[i].kind == folder_kind::foreign)
      refuse(errc::not_a_store, "folder " + in_quotes(folders[i]) + " is not a store and not empty (it holds '" +
                                    states[i].stranger + "'); name a store, or a new or empty folder");
  const auto first =
      std::find_if(states.begin(), states.end(), [](const folder_state& s) { return s.kind == folder_kind::node; });
  if (first == states.end()) return std::nullopt;

  const node_identity& id = first->identity;
  const fs::path& named = folders[static_cast<std::size_t>(first - states.begin())];
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::string folder = "folder " + in_quotes(folders[i]);
    if (is_absent(states[i].kind)) continue;
    if (states[i].kind != folder_kind::node)
      refuse(errc::not_a_store, folder + " is missing or empty, but " + in_quotes(named) + " belongs to a store of " +
                                    std::to_string(id.count) + " folders; mount the disk, or name the right folder" +
                                    remedy_if_lost(folders, i));
    const node_identity& n = states[i].identity;
    if (n.uuid != id.uuid)
      refuse(errc::not_a_store, folder + " belongs to store " + n.uuid + ", " + in_quotes(named) + " to store " +
                                    id.uuid + "; name the folders of one store");
    // Others may be from before the store got further ones.
    if (i == 0 && n.count != folders.size())
      refuse(errc::not_a_store, folder + " belongs to a store of " + std::to_string(n.count) + " folders, but " +
                                    std::to_string(folders.size()) + " were named; name all of them, in order");
    if (n.index != i)
      refuse(errc::not_a_store, folder + " is folder " + std::to_string(n.index + 1) + " of its store, not " +
                                    std::to_string(i + 1) + "; name the folders in the order they were made in");
  }
  return id.uuid;
}

/// Locks held on folders until destruction.
class folder_locks {
 public:
  ~folder_locks() {
    for (const int fd : fds_) ::close(fd);
  }

  void lock(const fs::path& folder) {
    const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) fail(last_error(), "folder " + in_quotes(folder) + " cannot be opened");
    fds_.push_back(fd);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        fail(last_error(), "folder " + in_quotes(folder) + " cannot be locked");
      if (std::chrono::steady_clock::now() > deadline)
        fail({ETIMEDOUT, std::generic_category()},
             "folder " + in_quotes(folder) +
                 ": another process has been making a store there for 60 s; look for one that is "
                 "stopped");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  std::vector<int> fds_;
};

void finish(const fs::path& folder) {
  if (::rename((folder / unfinished_node_file_name).c_str(), (folder / node_file_name).c_str()) != 0)
    fail(last_error(), in_quotes(folder / node_file_name) + " cannot be made");
  sync_folder(folder);
}

void clear_unfinished(const fs::path& folder) {
  std::error_code ignored;
  fs::remove(folder / unfinished_node_file_name, ignored);
  for (const char* suffix : {"", "-wal", "-shm", "-journal"})
    fs::remove(folder / (std::string(metadata_file_name) + suffix), ignored);
}

/// A maker died between its first rename and its last: then every folder was prepared, and renaming
/// the rest finishes the store.  True if that was so.
bool roll_forward(const std::vector<fs::path>& folders, const std::vector<folder_state>& states) {
  std::string uuid;
  for (const folder_state& s : states)
    if (s.kind == folder_kind::node) uuid = s.identity.uuid;
  if (uuid.empty()) return false;
  for (std::size_t i = 0; i < folders.size(); ++i)
    if ((states[i].kind != folder_kind::node && states[i].kind != folder_kind::unfinished) ||
        states[i].identity != node_identity{uuid, i, folders.size(), {}})
      return false;
  for (std::size_t i = folders.size(); i-- > 0;)
    if (states[i].kind == folder_kind::unfinished) finish(folders[i]);
  return true;
}

struct stat status_of(const fs::path& folder) {
  struct stat st {};
  if (::stat(folder.c_str(), &st) != 0) fail(last_error(), "folder " + in_quotes(folder) + " cannot be used");
  return st;
}

/// Users that may read and write a folder of the store may do so with the file in it, whatever the umask of the
/// maker.
void share_as_folder(const fs::path& file) {
  const struct stat folder = status_of(file.parent_path());
  if (const int e = set_access(file, (folder.st_mode & 0666) | 0600, keep_id, folder.st_gid))
    fail({e, std::generic_category()}, in_quotes(file) + " cannot be given the mode of its folder");
}

std::string make(const std::vector<fs::path>& folders, credentials owner) {
  const std::string uuid = new_uuid();
  try {
    for (std::size_t i = 0; i < folders.size(); ++i) {
      clear_unfinished(folders[i]);
      write_durably(folders[i] / unfinished_node_file_name, to_text({uuid, i, folders.size(), {}}));
    }
    // Users that may make files in the folder may do so in the store.
    const struct stat first = status_of(folders[0]);
    make_metadata_database(folders[0] / metadata_file_name, uuid, {owner.uid, first.st_gid},
                           0755 | (first.st_mode & 022));
    share_as_folder(folders[0] / metadata_file_name);
    for (const fs::path& f : folders) share_as_folder(f / unfinished_node_file_name);
    for (const fs::path& f : folders) sync_folder(f);
  } catch (...) {
    for (const fs::path& f : folders) clear_unfinished(f);
    throw;
  }
  // The first folder last: when it is a node, all are.
  for (std::size_t i = folders.size(); i-- > 0;) finish(folders[i]);
  return uuid;
}

/// Makes missing folders; removes those again if making the store fails.
class new_folders {
 public:
  void make(const fs::path& folder) {
    std::vector<fs::path> missing;
    std::error_code ec;
    for (fs::path p = folder; !p.empty() && !fs::exists(p, ec); p = p.parent_path()) missing.push_back(p);
    for (auto p = missing.rbegin(); p != missing.rend(); ++p) {
      if (fs::create_directory(*p, ec)) made_.push_back(*p);
      if (ec && ec != std::errc::file_exists) fail(ec, "folder " + in_quotes(*p) + " cannot be made");
    }
  }
  void keep() { made_.clear(); }
  ~new_folders() {
    for (auto p = made_.rbegin(); p != made_.rend(); ++p) ::rmdir(p->c_str());  // only if empty
  }

 private:
  std::vector<fs::path> made_;
};

}  // namespace

std::string open_remaining_folders(const std::vector<fs::path>& folders, const std::vector<fs::path>& lost) {
  const std::vector<folder_state> states = inspect(folders, lost);
  if (states[0].kind == folder_kind::lost)
    refuse_folder(folders[0].native(),
                  "cannot be done without: it has the names and shapes of the store's files; put "
                  "it back, from a copy if it is lost");
  if (const auto uuid = identity_of(folders, states)) return *uuid;
  refuse(errc::not_a_store, "there is no store in folder " + in_quotes(folders[0]));
}

std::string open_store_folders(const std::vector<fs::path>& folders, bool create, credentials owner) {
  const auto any = [](const std::vector<folder_state>& states, folder_kind kind) {
    return std::any_of(states.begin(), states.end(), [&](const folder_state& s) { return s.kind == kind; });
  };
  const auto may_be_made = [&](const std::vector<folder_state>& states) {
    return create && !any(states, folder_kind::foreign) && !any(states, folder_kind::node);
  };
  std::vector<fs::path> in_order = folders;  // one order of locking for everybody
  std::sort(in_order.begin(), in_order.end());

  for (int attempt = 0; attempt < 10; ++attempt) {
    std::vector<folder_state> states = inspect(folders);
    if (std::all_of(states.begin(), states.end(), [](const folder_state& s) {
          return s.kind == folder_kind::node || s.kind == folder_kind::retired;
        }))
      return *identity_of(folders, states);

    // Perhaps somebody is just making the store, so what was seen may be half of it: look again,
    // and decide, while nobody can be.
    new_folders made;
    if (may_be_made(states))
      for (const fs::path& f : folders) made.make(f);
    folder_locks locks;
    for (const fs::path& f : in_order)
      if (fs::exists(f)) locks.lock(f);
    states = inspect(folders);
    if (roll_forward(folders, states)) states = inspect(folders);
    if (const auto uuid = identity_of(folders, states)) {
      made.keep();
      return *uuid;
    }
    if (!create)
      refuse(errc::not_a_store, "there is no store in folder " + in_quotes(folders[0]) +
                                    "; name the folder of a store, or make a new one (`ooc init`)");
    if (any(states, folder_kind::missing)) continue;  // removed since: once more
    std::string uuid = make(folders, owner);
    made.keep();
    return uuid;
  }
  fail({EBUSY, std::generic_category()},
       "folder " + in_quotes(folders[0]) + ": another process keeps removing the store's folders");
}

namespace {

/// Makes `fresh`, which must be missing or empty, into a node of a store; nothing is done where it is that node
/// already.
void make_node(const fs::path& fresh, const node_identity& wanted) {
  const folder_state now = inspect(fresh);
  if (now.kind == folder_kind::node && now.identity.is_same_node(wanted)) return;
  if (now.kind == folder_kind::node || now.kind == folder_kind::foreign)
    refuse_folder(fresh.native(), "is not empty: give a new folder, or an empty one");
  new_folders made;
  made.make(fresh);
  clear_unfinished(fresh);
  write_durably(fresh / unfinished_node_file_name, to_text(wanted));
  share_as_folder(fresh / unfinished_node_file_name);
  sync_folder(fresh);
  finish(fresh);
  made.keep();
}

/// What the first folder of the store says of all, in one step.
void change_first(const fs::path& first, const std::function<void(node_identity&)>& change) {
  node_identity now = read_node_file(first / node_file_name);
  change(now);
  write_durably(first / unfinished_node_file_name, to_text(now));
  share_as_folder(first / unfinished_node_file_name);
  finish(first);
}

}  // namespace

std::vector<std::size_t> retired_folders(const std::vector<fs::path>& folders) {
  return read_node_file(folders[0] / node_file_name).retired;
}

void add_folders(const std::vector<fs::path>& folders, const std::vector<fs::path>& fresh) {
  const std::string uuid = open_store_folders(folders, false, {});
  folder_locks alone;
  alone.lock(folders[0]);
  (void)identity_of(folders, inspect(folders));  // others may have added some meanwhile
  const std::size_t all = folders.size() + fresh.size();
  for (std::size_t i = 0; i < fresh.size(); ++i) make_node(fresh[i], {uuid, folders.size() + i, all, {}});
  // First the entries, which say of each file where it lies, so that it is found whatever the number of nodes.
  note_growth_of_store(folders[0] / metadata_file_name, uuid, static_cast<std::uint32_t>(folders.size()));
  change_first(folders[0], [&](node_identity& n) { n.count = all; });
}

void retire_folder(const std::vector<fs::path>& folders, std::size_t node) {
  folder_locks alone;
  alone.lock(folders[0]);
  change_first(folders[0], [&](node_identity& n) {
    if (std::ranges::find(n.retired, node) == n.retired.end()) n.retired.push_back(node);
  });
}

void add_replacement_folder(const std::vector<fs::path>& folders, std::size_t lost, const fs::path& fresh) {
  const std::string uuid = open_remaining_folders(folders, {folders[lost]});
  const node_identity wanted{uuid, lost, folders.size(), {}};
  if (fresh != folders[lost])
    if (const folder_state old = inspect(folders[lost]);
        old.kind == folder_kind::node && old.identity.is_same_node(wanted))
      refuse_folder(folders[lost].native(), "is there: nothing of node " + std::to_string(lost) + " is lost");
  make_node(fresh, wanted);
}

}  // namespace ooc::storage
