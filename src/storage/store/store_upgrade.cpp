#include "storage/store/store_upgrade.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "oocarray/error.hpp"
#include "storage/base/disk_format_version.hpp"
#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/opening_lock.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/node/checksum_file.hpp"
#include "storage/node/node_folder.hpp"
#include "storage/node/undo_journal.hpp"
#include "storage/store/store_folders.hpp"

namespace ooc::storage {
namespace {

namespace fs = std::filesystem;
using step_function = std::function<void(const std::string&)>;

constexpr const char* local_name = "oocarray-node";
constexpr const char* metadata_name = "oocarray-metadata";
constexpr const char* iod_name = "oocarray-iod";

void check(int error, const fs::path& file, const char* doing) {
  if (error != 0)
    throw io_error({error, std::generic_category()}, "'" + file.string() + "' cannot be " + doing);
}

// What the file says that names a folder's owner; all three kinds have a version and words and
// numbers after it.
struct folder_identity {
  fs::path folder;
  std::string name;  ///< of the file
  int version = 0;
  std::string store;  ///< UUID; an I/O server's may have none yet
  std::uint32_t node = 0;
  std::uint32_t nodes = 0;
};

std::optional<folder_identity> read_identity(const fs::path& folder) {
  for (const char* name : {local_name, metadata_name, iod_name}) {
    std::ifstream in(folder / name);
    if (!in) continue;
    folder_identity f{folder, name, 0, {}, 0, 0};
    std::string magic, word;
    in >> magic >> f.version;
    if (!in || magic != name)
      refuse_folder(folder.native(), std::string("has a damaged file '") + name + "'");
    if (f.version != 1 && f.version != disk_format_version)
      refuse_version("folder '" + folder.string() + "'", f.version, disk_format_version);
    while (in >> word) {
      if (word == "store") in >> f.store;
      if (word == "node") in >> f.node;
      if (word == "of" || word == "nodes") in >> f.nodes;
    }
    return f;
  }
  return std::nullopt;
}

file_descriptor lock_folder(const fs::path& folder) {
  file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  check(fd ? 0 : errno, folder, "opened");
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) check(errno, folder, "locked");
    throw usage_error(errc::busy, "folder '" + folder.string() +
                                      "' is in use: stop its server, or the other upgrade, first");
  }
  return fd;
}

// The first line gets the new version, the rest stays.
void write_identity(const folder_identity& f, const step_function& step) {
  if (f.version == disk_format_version) return;
  step("the file that names folder " + f.folder.string());
  std::ifstream in(f.folder / f.name);
  std::string first;
  std::getline(in, first);
  std::ostringstream text;
  text << f.name << " " << disk_format_version << "\n" << in.rdbuf();
  const fs::path fresh = f.folder / (f.name + ".upgrade");
  write_durably(fresh, text.str());
  struct stat like {};
  if (::stat((f.folder / f.name).c_str(), &like) == 0)
    check(set_access(fresh, like.st_mode & 0777, like.st_uid, like.st_gid), fresh, "given its mode");
  check(::rename(fresh.c_str(), (f.folder / f.name).c_str()) == 0 ? 0 : errno, fresh, "renamed");
  sync_folder(f.folder);
}

using known_files = std::map<file_id, file_shape>;

known_files read_files(const fs::path& database) {
  sqlite::connection c(database, sqlite::open_as::existing);
  known_files files;
  sqlite::query q(c, "SELECT id, sn, nn, sf, size, sparse, fill, name FROM entry WHERE kind = 2");
  while (q.next()) {
    file_shape f;
    f.id = q.unsigned_integer(0);
    f.striping = {static_cast<std::uint32_t>(q.integer(1)),
                  static_cast<std::uint32_t>(q.integer(2)), q.unsigned_integer(3)};
    f.size = q.unsigned_integer(4);
    f.sparse = q.integer(5) != 0;
    f.fill = q.blob(6);
    f.name = q.text(7);
    files.emplace(f.id, std::move(f));
  }
  return files;
}

// The header of version 1: the first 56 bytes are as now, and its checksum covers 4096.
struct old_header {
  checksum_header start;
  std::byte rest[4096 - sizeof(checksum_header)];
};
static_assert(sizeof(old_header) == 4096);

int read_old_header(int fd, checksum_header& h) {
  auto old = std::make_unique<old_header>();
  if (const int e = read_whole(fd, old.get(), sizeof *old, 0)) return e;
  const std::uint32_t crc = std::exchange(old->start.crc, 0);
  h = old->start;
  return crc32c(old.get(), sizeof *old) == crc && h.version == 1 && h.chunk_bytes == chunk_size
             ? 0
             : EINVAL;
}

std::uint64_t file_size(int fd, const fs::path& path) {
  struct stat st {};
  check(::fstat(fd, &st) == 0 ? 0 : errno, path, "looked at");
  return static_cast<std::uint64_t>(st.st_size);
}

class share_upgrade {
 public:
  share_upgrade(const node_folder& folder, const object_identity& who)
      : folder_(folder), who_(who), path_(folder.sums(who.id)), fresh_(path_.string() + ".new") {}

  // Empty, or why the stripe object was left as it is.
  std::string run(bool& already) {
    const file_descriptor old(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!old) return "its checksum file cannot be opened: " + std::string(std::strerror(errno));
    char magic[8] = {};
    check(read_whole(old.get(), magic, sizeof magic, 0), path_, "read");
    already = std::memcmp(magic, checksum_header{}.magic.data(), sizeof magic) == 0;
    if (already) return {};
    const file_descriptor data(::open(folder_.data(who_.id).c_str(), O_RDWR | O_CLOEXEC));
    if (!data) return "its data file cannot be opened: " + std::string(std::strerror(errno));
    checksum_header h;
    const int error = std::memcmp(magic, "OOCSUM1", 8) == 0 ? read_old_header(old.get(), h) : EINVAL;
    if (error == EINVAL || (error == 0 && h.id != who_.id))
      return "the header of its checksums is damaged or that of another file";
    check(error, path_, "read");
    const std::uint64_t chunks = file_size(data.get(), folder_.data(who_.id)) / chunk_size;

    // Writes that were not synced: undone where the power was lost since, else made durable.
    if (h.unsynced != boot_id{} && h.unsynced != this_boot()) {
      h.flags |= checksum_header::power_lost;
      undo_journal undo(folder_.undo(who_.id), 0);
      check(undo.replay(h.syncs,
                        [&](const undo_record& r) {
                          if (r.chunk >= chunks) return 0;
                          undone_[r.chunk] = {r.sum, r.sum};
                          return r.sum == 0 ? 0
                                            : write_whole(data.get(), r.image, chunk_size,
                                                          r.chunk * chunk_size);
                        }),
            folder_.undo(who_.id), "applied");
    }
    check(::fdatasync(data.get()) == 0 ? 0 : errno, folder_.data(who_.id), "synced");
    write_fresh(old.get(), h, chunks);
    check(::rename(fresh_.c_str(), path_.c_str()) == 0 ? 0 : errno, fresh_, "renamed");
    sync_folder(path_.parent_path());
    return {};
  }

 private:
  void write_fresh(int old, checksum_header h, std::uint64_t chunks) {
    file_descriptor fd(::open(fresh_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    check(fd ? 0 : errno, fresh_, "made");
    const auto bytes = static_cast<off_t>(checksum_file::bytes_for(chunks));
    if (::fallocate(fd.get(), 0, 0, bytes) != 0)
      check(errno == EOPNOTSUPP ? (::ftruncate(fd.get(), bytes) == 0 ? 0 : errno) : errno, fresh_,
            "given its space");
    struct stat st {};
    if (::fstat(old, &st) == 0) {
      check(::fchmod(fd.get(), st.st_mode & 07777) == 0 ? 0 : errno, fresh_, "given its mode");
      if (::fchown(fd.get(), st.st_uid, st.st_gid) != 0 && errno != EPERM)
        check(errno, fresh_, "given its owner");
    }
    const checksum_file sums(std::move(fd), object_seeds(who_));
    const std::uint64_t have = (std::max<std::uint64_t>(file_size(old, path_), 4096) - 4096) / 8;
    const std::uint64_t regions = checksum_file::regions_for(chunks);
    check(sums.mark_untouched(0, regions), fresh_, "written");
    std::vector<checksum_entry> entries;
    for (std::uint64_t r = 0; r < regions; ++r) {
      const std::uint64_t first = r * checksum_file::region_chunks;
      const std::uint64_t end = std::min(first + checksum_file::region_chunks, chunks);
      // Entries that version 1 does not have are lost: they stay zeros.
      entries.assign(first < have ? std::min(end, have) - first : 0, {});
      if (!entries.empty())
        check(read_whole(old, entries.data(), entries.size() * sizeof(checksum_entry), 4096 + first * 8),
              path_, "read");
      for (auto u = undone_.lower_bound(first); u != undone_.end() && u->first < end; ++u)
        if (u->first - first < entries.size()) entries[u->first - first] = u->second;
      const bool used = std::any_of(entries.begin(), entries.end(),
                                    [](const checksum_entry& e) { return e != checksum_entry{}; });
      if (!used && first + entries.size() == end) continue;
      check(sums.write(first, entries), fresh_, "written");
      check(sums.mark_touched(r, h.syncs), fresh_, "written");
    }
    checksum_header fresh;
    fresh.set_identity(who_);
    fresh.chunks = chunks;
    fresh.generation = 1;
    fresh.syncs = h.syncs + 1;  // records of the old undo log are stale
    fresh.flags = h.flags | checksum_header::synced_once;
    check(sums.write_header(fresh), fresh_, "written");
    check(::fsync(sums.fd()) == 0 ? 0 : errno, fresh_, "synced");
  }

  const node_folder& folder_;
  const object_identity who_;
  const fs::path path_;
  const fs::path fresh_;
  std::map<std::uint64_t, checksum_entry> undone_;
};

void upgrade_shares(const folder_identity& node, std::uint32_t nodes, const known_files& files,
                    upgrade_result& result, const step_function& step) {
  if (node.version == disk_format_version) return;
  const node_folder folder(node.folder);
  std::error_code ec;
  if (!fs::exists(node.folder / "shares", ec)) return;
  std::vector<file_id> ids;
  check(folder.list(ids), node.folder / "shares", "listed");
  for (const file_id id : ids) {
    const std::string name = folder.sums(id).string();
    const auto f = files.find(id);
    if (f == files.end()) {
      result.problems.push_back("'" + name + "': no file of the store has it; left as it is");
      continue;
    }
    const striping& s = f->second.striping;
    if (s.nn == 0 || s.sf == 0 || s.sn >= nodes || s.nn > nodes ||
        (node.node + nodes - s.sn) % nodes >= s.nn) {
      result.problems.push_back("'" + name + "': by its striping '" + f->second.name +
                                "' has nothing on this node; left as it is");
      continue;
    }
    step(name);
    bool already = false;
    const std::uint32_t stripe_index = (node.node + nodes - s.sn) % nodes;
    const std::string why =
        share_upgrade(folder, identity_of(store_id_from(node.store), f->second, stripe_index)).run(already);
    if (!why.empty())
      result.problems.push_back("'" + name + "' ('" + f->second.name + "'): " + why);
    else
      ++(already ? result.already : result.objects);
  }
}

std::vector<folder_identity> identities(const std::vector<fs::path>& folders) {
  std::vector<folder_identity> all;
  for (const fs::path& f : folders) {
    auto one = read_identity(f);
    if (!one) refuse_folder(f.native(), "is neither of a local store nor that of a server");
    all.push_back(std::move(*one));
  }
  if (all.empty()) throw usage_error(errc::not_a_store, "no folder is named");
  return all;
}

void require_whole_store(const std::vector<folder_identity>& all) {
  std::set<std::uint32_t> places;
  for (const folder_identity& f : all) {
    if (f.name != local_name || f.store != all[0].store)
      refuse_folder(f.folder.native(),
                    "does not belong to the store of '" + all[0].folder.string() + "'");
    places.insert(f.node);
  }
  if (places.size() != all.size() || all.size() != all[0].nodes)
    refuse_folder(all[0].folder.native(), "belongs to a store of " + std::to_string(all[0].nodes) +
                                              " folders: name all of them, each once");
}

}  // namespace

upgrade_result upgrade_store(const std::vector<fs::path>& folders, const fs::path& metadata,
                             const step_function& step) {
  std::vector<folder_identity> all = identities(folders);
  std::vector<file_descriptor> locks;
  std::vector<fs::path> in_order = folders;
  std::sort(in_order.begin(), in_order.end());
  for (const fs::path& f : in_order) locks.push_back(lock_folder(f));

  const bool local = all[0].name == local_name;
  if (local) require_whole_store(all);
  std::sort(all.begin(), all.end(), [](const folder_identity& a, const folder_identity& b) {
    return a.name != b.name ? a.name == metadata_name : a.node < b.node;
  });
  // Who knows the files: the first folder, or the copy that was named.
  std::optional<folder_identity> source;
  if (local || all[0].name == metadata_name)
    source = all[0];
  else if (!metadata.empty())
    source = read_identity(metadata);
  if (!source || (!local && source->name != metadata_name))
    refuse_folder(all[0].folder.native(),
                  "is that of an I/O server: name the folder of its metadata server as well, "
                  "or a copy of it with --metadata");
  for (const folder_identity& f : all) {
    if (!f.store.empty() && f.store != source->store)
      refuse_folder(f.folder.native(), "belongs to store " + f.store + ", '" +
                                           source->folder.string() + "' to store " + source->store);
    if (&f != &all[0] && !local && f.name != iod_name)
      refuse_folder(f.folder.native(),
                    "is not that of an I/O server of '" + source->folder.string() + "'");
  }

  upgrade_result result;
  const fs::path database = source->folder / metadata_file_name;
  if (source->folder == all[0].folder) {
    step("the database");
    // Not while somebody reads it as it lies.
    opening_lock alone;
    if (local) alone = opening_lock(source->folder / local_name, opening::alone);
    upgrade_metadata_database(database, source->store);
  }
  const known_files files = read_files(database);
  for (const folder_identity& f : all)
    if (f.name != metadata_name && !f.store.empty())
      upgrade_shares(f, source->nodes, files, result, step);
  // The first folder last: while it is of version 1, the store is.
  for (auto f = all.rbegin(); f != all.rend(); ++f) write_identity(*f, step);
  return result;
}

}  // namespace ooc::storage
