#include "mpiio/file_name.hpp"

#include <cstdlib>
#include <filesystem>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/store/store_folders.hpp"
#include "storage/store/store_url.hpp"

namespace ooc::mpiio {

namespace {

constexpr std::string_view prefix = "ooc:";
constexpr std::string_view local = "local:", rados = "rados:";

std::string_view without_slashes(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

bool is_store_folder(std::string_view folder) {
  std::error_code ec;
  const auto folders = storage::local_folders({"local", std::string(folder)});
  return std::filesystem::exists(folders.front() / storage::node_file_name, ec);
}

file_name in_local_store(std::string_view name, std::string_view rest) {
  const auto comma = rest.rfind(',');
  const auto begin = comma == rest.npos ? 0 : comma + 1;
  const std::string_view last = rest.substr(begin);
  for (auto slash = last.find('/', 1); slash != last.npos; slash = last.find('/', slash + 1)) {
    const std::string_view path = without_slashes(last.substr(slash));
    if (!is_store_folder(last.substr(0, slash))) continue;
    if (path.empty()) break;
    return {std::string(local) + std::string(rest.substr(0, begin + slash)), std::string(path)};
  }
  if (!last.empty() && is_store_folder(last)) refuse(errc::not_a_store, name, "names a store, and no file in it");
  refuse(errc::not_a_store, name,
         "no folder of a store is on the way of '" + std::string(last) +
             "'; write ooc:local:FOLDER[,FOLDER...]/PATH, and make the store first (ooc init)");
}

file_name in_served_store(std::string_view name, std::string_view rest) {
  const auto question = rest.find('?');
  const std::string_view options = question == rest.npos ? "" : rest.substr(question);
  rest = rest.substr(0, question);
  const auto slash = rest.find('/', 2);
  const std::string_view path = slash == rest.npos ? "" : without_slashes(rest.substr(slash));
  if (path.empty()) refuse(errc::not_a_store, name, "names a store, and no file in it; write ooc://HOST[:PORT]/PATH");
  return {std::string(prefix) + std::string(rest.substr(0, slash)) + "/" + std::string(options), std::string(path)};
}

/// `rest`: "POOL/NAMESPACE/PATH?OPTIONS".
file_name in_rados(std::string_view name, std::string_view rest) {
  const auto question = rest.find('?');
  const std::string_view options = question == rest.npos ? "" : rest.substr(question);
  rest = rest.substr(0, question);
  const auto slash = rest.find('/'), end = slash == rest.npos ? slash : rest.find('/', slash + 1);
  const std::string_view path = end == rest.npos ? "" : without_slashes(rest.substr(end));
  if (path.empty())
    refuse(errc::not_a_store, name, "names no file of a store in RADOS; write ooc:rados:POOL/NAMESPACE/PATH");
  return {std::string(rados) + std::string(rest.substr(0, end)) + std::string(options), std::string(path)};
}

}  // namespace

bool is_file_name(std::string_view name) { return name.starts_with(prefix); }

file_name parse_file_name(std::string_view name) {
  std::string_view rest = name;
  rest.remove_prefix(prefix.size());
  if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  if (rest.starts_with("//")) return in_served_store(name, rest);
  if (rest.starts_with(local)) return in_local_store(name, rest.substr(local.size()));
  if (rest.starts_with(rados)) return in_rados(name, rest.substr(rados.size()));
  const char* store = std::getenv("OOC_STORE");
  if (store == nullptr || *store == '\0')
    refuse(errc::not_a_store, name,
           "names no store; write ooc:local:FOLDER[,FOLDER...]/PATH or ooc://HOST[:PORT]/PATH, or "
           "set OOC_STORE");
  rest = without_slashes(rest);
  if (rest.empty()) refuse(errc::not_a_store, name, "names no file");
  return {store, std::string(rest)};
}

}  // namespace ooc::mpiio
