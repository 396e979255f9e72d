#include "storage/store/network_folder.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <fstream>
#include <sstream>
#include <utility>

namespace ooc::storage {

namespace {

namespace fs = std::filesystem;

constexpr long fuse_type_number = 0x65735546;

// From linux/magic.h and the file systems' own sources; 9P and virtiofs, with which a virtual machine has folders of
// its host, are not here.
constexpr std::pair<long, std::string_view> by_number[] = {
    {0x6969, "NFS"},          {0x517b, "SMB"},       {0xfe534d42, "SMB"},   {0xff534d42, "CIFS"},
    {0x0bd00bd0, "Lustre"},   {0x47504653, "GPFS"},  {0x00c36400, "Ceph"},  {0x19830326, "BeeGFS"},
    {0x20030528, "OrangeFS"}, {0xaad7aaea, "PanFS"}, {0x5346414f, "AFS"},   {0x6b414653, "AFS"},
    {0x73757245, "Coda"},     {0x01161970, "GFS2"},  {0x7461636f, "OCFS2"}, {0x013111a8, "IBRIX"},
};
constexpr std::string_view by_name[] = {"sshfs",  "glusterfs", "ceph-fuse", "cephfs", "juicefs", "moosefs",  "mfs",
                                        "rclone", "s3fs",      "gcsfuse",   "goofys", "davfs2",  "curlftpfs"};

/// Of the mount with this device; empty: it is not in the table.
std::string type_of_mount(dev_t device) {
  std::ostringstream wanted;
  wanted << major(device) << ":" << minor(device);
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, number, word, type;
    fields >> id >> parent >> number;
    if (number != wanted.str()) continue;
    while (fields >> word && word != "-") {
    }
    fields >> type;
    return type;
  }
  return {};
}

}  // namespace

std::string_view network_file_system(long type) noexcept {
  for (const auto& [number, name] : by_number)
    if ((type & 0xffffffffL) == number) return name;
  return {};
}

std::string_view network_file_system(std::string_view fuse_type) noexcept {
  if (fuse_type.starts_with("fuse.")) fuse_type.remove_prefix(5);
  for (const std::string_view name : by_name)
    if (fuse_type == name) return name;
  return {};
}

std::string network_file_system_of(const fs::path& folder) {
  struct ::statfs s {};
  fs::path there = folder;
  while (::statfs(there.c_str(), &s) != 0) {
    if (!there.has_relative_path()) return {};  // whoever uses the folder says what is wrong
    there = there.parent_path();
  }
  const auto type = static_cast<long>(s.f_type);
  if ((type & 0xffffffffL) != fuse_type_number) return std::string(network_file_system(type));
  struct ::stat at {};
  if (::stat(there.c_str(), &at) != 0) return {};
  return std::string(network_file_system(std::string_view(type_of_mount(at.st_dev))));
}

}  // namespace ooc::storage
