#include "storage/namespace/store_path.hpp"

#include <cerrno>

#include "oocarray/error.hpp"

namespace ooc::storage {

std::vector<std::string> split_path(std::string_view path) {
  const auto refuse = [&](int err, const char* why) {
    std::string shown(path.substr(0, 80));
    for (char& c : shown)
      if (c == '\0') c = '?';
    throw usage_error({err, std::generic_category()}, "path '" + shown + "': " + why);
  };
  if (path.size() > max_path) refuse(ENAMETOOLONG, "longer than 4096 bytes");
  if (path.find('\0') != path.npos) refuse(EINVAL, "holds a zero byte");

  std::vector<std::string> parts;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "." || part == "..") refuse(EINVAL, "'.' and '..' have no meaning in a store");
    if (part.size() > max_name) refuse(ENAMETOOLONG, "a name has at most 255 bytes");
    if (!part.empty()) parts.emplace_back(part);
    path.remove_prefix(slash == path.npos ? path.size() : slash + 1);
  }
  return parts;
}

std::string join_path(const std::vector<std::string>& components) {
  std::string path;
  for (const std::string& c : components) {
    if (!path.empty()) path += '/';
    path += c;
  }
  return path;
}

}  // namespace ooc::storage
