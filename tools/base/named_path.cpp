#include "base/named_path.hpp"

#include <fnmatch.h>

#include <cstdio>
#include <filesystem>

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
        storage::local_folders(storage::parse_store_url(url)).back() / storage::node_file_name, ignored);
  } catch (const error&) {
    return false;  // whoever opens it says why
  }
}

bool has_wildcards(const std::string& name) { return name.find_first_of("*?[") != name.npos; }

void match(storage::metadata_service& metadata, const std::string& folder, const std::string& rest,
           std::vector<std::string>& out) {
  const auto slash = rest.find('/');
  const std::string name = rest.substr(0, slash);
  const std::string below = slash == rest.npos ? "" : rest.substr(slash + 1);
  std::vector<storage::entry> all;
  if (has_wildcards(name))
    all = metadata.list(folder);
  else if (auto e = lookup_if_there(metadata, join(folder, name)))
    all.push_back(*std::move(e));
  for (const storage::entry& e : all) {
    if (has_wildcards(name) && ::fnmatch(name.c_str(), last_name(e.path).c_str(), FNM_PERIOD) != 0) continue;
    if (below.empty())
      out.push_back(e.path);
    else if (e.kind == storage::entry_kind::folder)
      match(metadata, e.path, below, out);
  }
}

}  // namespace

bool is_url(const std::string& argument) {
  return argument.starts_with("local:") || argument.starts_with("ooc:") || argument.starts_with("rados:");
}

std::optional<std::string> plain_path(const std::string& argument) {
  if (argument.starts_with("file:")) return argument.substr(5);
  const bool relative =
      argument == "." || argument == ".." || argument.starts_with("./") || argument.starts_with("../");
  return relative ? std::optional(argument) : std::nullopt;
}

namespace {

/// Where the options at the end begin: "?key=value"; any other question mark is a wildcard.
std::size_t begin_of_options(const std::string& url) {
  const auto mark = url.find_last_of('?');
  if (mark == url.npos) return url.size();
  const auto equals = url.find('=', mark);
  return equals != url.npos && url.find_first_of("/*[", mark) > equals ? mark : url.size();
}

url_path split_local_url(const std::string& url) {
  std::string options = url.substr(begin_of_options(url));
  if (!options.starts_with("?lost=") && !options.starts_with("?hosts=")) options.clear();
  const std::string name = url.substr(0, url.size() - options.size());
  const auto first = name.find(':') + 1, comma = name.find_last_of(',');
  const auto last_folder = comma == name.npos ? first : comma + 1;
  for (auto end = name.size(); end != name.npos && end > last_folder; end = name.find_last_of('/', end - 1))
    if (ends_in_store(name.substr(0, end)))
      return {name.substr(0, end) + options, end == name.size() ? "" : name.substr(end + 1)};
  return {url, ""};
}

}  // namespace

url_path split_url(const std::string& url) {
  if (url.starts_with("local:")) return split_local_url(url);
  const auto end = begin_of_options(url);
  // A path in a store in RADOS follows its namespace.
  const bool rados = url.starts_with("rados:");
  const auto name = rados ? url.find('/') + 1 : std::string("ooc://").size();
  const auto slash = name == 0 || (!rados && !url.starts_with("ooc://")) ? url.npos : url.find('/', name);
  if (slash >= end) return {url, ""};
  return {url.substr(0, slash + (rados ? 0 : 1)) + url.substr(end), url.substr(slash + 1, end - slash - 1)};
}

std::vector<std::string> expand(storage::metadata_service& metadata, const std::string& path) {
  if (!has_wildcards(path)) return {path};
  if (const auto e = lookup_if_there(metadata, path)) return {e->path};
  std::vector<std::string> found;
  match(metadata, "", trimmed(path), found);
  if (found.empty()) throw usage_mistake("'" + path + "' matches nothing in the store; `ooc ls` shows what is there");
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

std::string trimmed(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  path.erase(0, path.find_first_not_of('/'));
  return path;
}

}  // namespace ooc::tool
