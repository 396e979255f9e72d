#include "storage/store/local_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <random>
#include <vector>

#include "storage/base/file_access.hpp"
#include "storage/base/refuse.hpp"
#include "storage/chunked/packed_file.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/namespace/opening_lock.hpp"
#include "storage/node/local_node.hpp"
#include "storage/service/removals.hpp"
#include "storage/store/absent_node.hpp"
#include "storage/store/network_folder.hpp"
#include "storage/store/store_folders.hpp"

namespace ooc::storage {

namespace {

/// Enough requests in flight to keep a disk busy, without a crowd of threads on many nodes.
unsigned default_workers(std::size_t nodes) { return nodes == 1 ? 6 : nodes <= 4 ? 4 : 2; }

void check(const store_options& o) {
  constexpr std::uint64_t unit = 64_KiB;
  if (o.staging == 0 || o.staging % unit != 0)
    throw usage_error(errc::invalid_request,
                      "store_options::staging is " + std::to_string(o.staging) + " bytes; give a multiple of 64 KiB");
  if (o.workers > 256)
    throw usage_error(errc::invalid_request,
                      "store_options::workers is " + std::to_string(o.workers) + "; give at most 256");
}

}  // namespace

namespace {

/// Why the caller may not write the store in these folders; nothing where he may.
std::optional<read_only_access> read_only(const std::vector<std::filesystem::path>& folders, const credentials& who) {
  const auto cannot_write = [&](const std::filesystem::path& path) -> std::optional<read_only_access> {
    const std::error_code why = forbidden(path, W_OK);
    if (!why || why == std::errc::no_such_file_or_directory) return {};
    if (why == std::errc::read_only_file_system)
      return read_only_access{
          why, "the store is open for reading only, for '" + path.string() + "' is on a read-only mount"};
    return read_only_access{why, "the store is open for reading only, for user " + std::to_string(who.uid) +
                                     " may not write '" + path.string() + "' (" + why.message() +
                                     "); its owner can change that"};
  };
  const auto database = folders[0] / metadata_file_name;
  if (auto why = cannot_write(database)) return why;
  // Beside the database SQLite makes the log and its index, where they are not there.
  if (auto why = cannot_write(folders[0])) return why;
  for (const auto& f : folders) {
    std::error_code ignored;
    const auto objects = f / "shares";
    if (auto why = cannot_write(std::filesystem::exists(objects, ignored) ? objects : f)) return why;
  }
  return {};
}

std::shared_ptr<local_metadata> open_metadata(const std::filesystem::path& folder, const std::string& uuid,
                                              const credentials& who, const std::optional<read_only_access>& why) {
  const auto database = folder / metadata_file_name;
  if (why) return std::make_shared<local_metadata>(database, uuid, who, *why);
  const opening_lock alone(folder / node_file_name, opening::alone);
  auto metadata = std::make_shared<local_metadata>(database, uuid, who);
  // SQLite gives the log and its index the mode of the database, and the group of who made them.
  struct stat like {};
  if (::stat(database.c_str(), &like) == 0)
    for (const char* tail : {"-wal", "-shm"})
      (void)set_access(database.string() + tail, like.st_mode & 0777, keep_id, like.st_gid);
  return metadata;
}

bool is_among(const std::vector<std::filesystem::path>& all, const std::filesystem::path& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

std::vector<std::filesystem::path> without_retired(std::vector<std::filesystem::path> folders) {
  for (const std::size_t r : retired_folders(folders)) folders[r] = folders[0];
  return folders;
}

/// Before anything is written: hosts that share such a folder would damage each other's data.
void refuse_network_folders(const std::vector<std::filesystem::path>& folders, local_options own) {
  if (std::exchange(own.one_host, true)) return;
  for (const auto& f : folders) {
    if (is_among(own.lost, f)) continue;
    if (const std::string type = network_file_system_of(f); !type.empty())
      refuse_folder(f.native(), "is on a network file system (" + type +
                                    "), and several hosts cannot share a local store: let one host serve it (`ooc up`, "
                                    "on its own disks), or, if never more than one host uses it, open '" +
                                    local_url(folders, own) + "'");
  }
}

/// Only what is left is read; the log that a program which died has left is brought in first, by who may.
read_only_access without_lost(const std::filesystem::path& first, const std::string& uuid,
                              const std::vector<std::filesystem::path>& lost, const credentials& who) {
  if (!read_only({first}, who)) (void)open_metadata(first, uuid, who, {});
  return {{EROFS, std::generic_category()},
          "the store is open for reading only, for its folder '" + lost.front().string() + "' is given up as lost"};
}

}  // namespace

std::vector<std::filesystem::path> usable_folders(const store_url& url) {
  auto folders = local_folders(url);
  refuse_network_folders(folders, local_options_of(url));
  return folders;
}

std::shared_ptr<store_core> open_local_store(const store_url& url, const store_options& options) {
  check(options);
  const credentials who{::geteuid(), ::getegid(), further_groups()};
  const auto folders = usable_folders(url);
  const local_options own = local_options_of(url);
  const std::string uuid =
      own.lost.empty() ? open_store_folders(folders, options.create, who) : open_remaining_folders(folders, own.lost);
  const std::vector<std::size_t> retired = retired_folders(folders);
  const auto only_reads =
      own.lost.empty() ? read_only(without_retired(folders), who) : without_lost(folders[0], uuid, own.lost, who);
  auto metadata = open_metadata(folders[0], uuid, who, only_reads);

  local_node_options node;
  node.workers = options.workers != 0 ? options.workers : default_workers(folders.size());
  node.staging = options.staging;
  node.direct_io = options.direct_io;
  node.io_uring = options.io_uring;
  node.store = uuid;
  node.writable = !only_reads;
  striped_file::nodes nodes;
  for (const auto& f : folders)
    nodes.push_back(is_among(own.lost, f)                                       ? make_lost_node(f)
                    : std::ranges::find(retired, nodes.size()) != retired.end() ? make_retired_node(f.string())
                                                                                : open_local_node(f, node));

  auto core = std::make_shared<store_core>(local_url(folders, own), uuid, std::move(metadata), std::move(nodes),
                                           std::random_device{}(), unpacked_node);
  if (!only_reads) sweep(*core);
  return core;
}

}  // namespace ooc::storage
