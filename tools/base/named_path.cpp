#include "base/named_path.hpp"

#include <fnmatch.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "base/command.hpp"
#include "oocarray/error.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::tool {

namespace {

/// Whether the last folder of a "local:" URL is one of a store.
bool ends_in_store(const std::string& url) {
  std::error_code ignored;
  try {
    return std::filesystem::exists(
        storage::local_folders(storage::parse_store_url(url)).back() / storage::node_file_name,
        ignored);
  } catch (const error&) {
    return false;  // whoever opens it says why
  }
}

bool has_wildcards(const std::string& name) {
  return name.find_first_of("*?[") != name.npos;
}

void match(storage::metadata_service& metadata, const std::string& folder, const std::string& rest,
           std::vector<std::string>& out) {
  const auto slash = rest.find('/');
  const std::string name = rest.substr(0, slash);
  const std::string below = slash == rest.npos ? "" : rest.substr(slash + 1);
  std::vector<storage::entry> all;
  if (has_wildcards(name))
    all = metadata.list(folder);
  else
    try {
      all = {metadata.lookup(join(folder, name))};
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
    }
  for (const storage::entry& e : all) {
    if (has_wildcards(name) && ::fnmatch(name.c_str(), last_name(e.path).c_str(), FNM_PERIOD) != 0)
      continue;
    if (below.empty())
      out.push_back(e.path);
    else if (e.kind == storage::entry_kind::folder)
      match(metadata, e.path, below, out);
  }
}

}  // namespace

bool is_url(const std::string& argument) {
  return argument.starts_with("local:") || argument.starts_with("ooc:");
}

url_path split_url(const std::string& url) {
  if (url.starts_with("local:")) {
    const auto first = url.find(':') + 1, comma = url.find_last_of(',');
    const auto last_folder = comma == url.npos ? first : comma + 1;
    for (auto end = url.size(); end != url.npos && end > last_folder;
         end = url.find_last_of('/', end - 1))
      if (ends_in_store(url.substr(0, end)))
        return {url.substr(0, end), end == url.size() ? "" : url.substr(end + 1)};
    return {url, ""};
  }
  if (!url.starts_with("ooc://")) return {url, ""};
  // The options at the end: "?key=value"; any other question mark is a wildcard.
  auto end = url.size();
  if (const auto mark = url.find_last_of('?'); mark != url.npos) {
    const auto equals = url.find('=', mark);
    if (equals != url.npos && url.find_first_of("/*[", mark) > equals) end = mark;
  }
  const auto slash = url.find('/', std::string("ooc://").size());
  if (slash >= end) return {url, ""};
  return {url.substr(0, slash + 1) + url.substr(end), url.substr(slash + 1, end - slash - 1)};
}

std::vector<std::string> expand(storage::metadata_service& metadata, const std::string& path) {
  if (!has_wildcards(path)) return {path};
  try {
    return {metadata.lookup(path).path};
  } catch (const error& e) {
    if (e.code() != std::errc::no_such_file_or_directory) throw;
  }
  std::vector<std::string> found;
  match(metadata, "", trimmed(path), found);
  if (found.empty())
    throw usage_mistake("'" + path +
                        "' matches nothing in the store; `ooc ls` shows what is there");
  return found;
}

std::string last_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 == 0: all of it
}

std::string join(const std::string& folder, const std::string& name) {
  if (folder.empty() || name.empty()) return folder + name;
  return folder.ends_with('/') ? folder + name : folder + "/" + name;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == path.npos ? "" : path.substr(0, slash);
}

std::string passing_path(const std::string& path) {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof text, ".ooc-cp-%08x%08x", random(), random());
  return join(folder_of(path), text);
}

std::string trimmed(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  path.erase(0, path.find_first_not_of('/'));
  return path;
}

}  // namespace ooc::tool
