// Names in the arguments of a command: paths in a store, wildcards, and URLs that hold both a store and a path.
//
//     runs/7/a                          a path in the store that --store or OOC_STORE names
//     local:/disk1,/disk2/runs/7/a      the same in the store local:/disk1,/disk2
//     ooc://head:7420/runs/*/a          everything of that kind in a served store
//     rados:pool/namespace/runs/7/a     in a store in RADOS, whose namespace must be named then
//
// Wildcards are those of the shell, within one component: * ? [a-z]; a backslash takes the next
// character as it is. What is there under exactly the name given comes before what the name
// matches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/service/metadata_service.hpp"

namespace ooc::tool {

bool is_url(const std::string& argument);

/// The path of a plain file that an argument names: file:PATH, ./PATH or ../PATH, which no path in a store is. Nothing:
/// it names a path in a store.
std::optional<std::string> plain_path(const std::string& argument);

struct url_path {
  std::string url, path;
};
/// Tells the store from the path in it.  Of "local:" URLs, the store is the longest part whose
/// folders are those of one; all of it where none are, so that opening it says what is wrong.
url_path split_url(const std::string& url);

/// The paths in a store that `path` matches, by name; `path` itself where it holds no wildcards.
/// Throws usage_mistake where nothing matches.
std::vector<std::string> expand(storage::metadata_service& metadata, const std::string& path);

/// The last component of a path; empty for the root.
std::string last_name(const std::string& path);
/// The folder that comes before it; empty for what lies in the root.
std::string folder_of(const std::string& path);
std::string join(const std::string& folder, const std::string& name);
/// The path as a store shows it: no slashes at either end.
std::string trimmed(std::string path);

}  // namespace ooc::tool
