// The common part of the subcommands of `ooc`: their options, the store, and how they end.
#pragma once

#include <boost/program_options.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "oocarray/store.hpp"

namespace ooc::tool {

namespace po = boost::program_options;

/// Exit statuses.
inline constexpr int success = 0;
inline constexpr int failed = 1;  ///< a line on stderr says why; of one thing nothing was changed, of several the
                                  ///< others were done
inline constexpr int problems_found =
    2;  ///< verify: damaged or orphaned data; import of a tree: something was left out

/// A mistake on the command line.
struct usage_mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A subcommand: how it is called, what it does.  `run` gets the arguments after its name.
struct command {
  const char* name;
  const char* usage;    ///< "ls [options] [PATH]"
  const char* summary;  ///< one line
  int (*run)(const command& self, const std::vector<std::string>& arguments);
};

/// A path in a store.
struct located {
  ooc::store store;
  std::string path;
};

extern const command add_node, drain_node, replace_node, restripe_files, pack, unpack, ls, cat, du, stat, rm, mv, mkdir,
    snapshot, truncate, picture, import_array, export_array, verify, info, attr, chmod, chown, init, keygen, revoke, cp,
    up, down, ping, df, top, start, stop, mount_store, umount_store;

/// The command line of one subcommand.  Every subcommand knows --store and --help.
class command_line {
 public:
  explicit command_line(const command& c);

  po::options_description_easy_init option() { return options_.add_options(); }
  /// --recursive, -r or -R: `what` it takes.
  void recursive_option(const char* what);
  bool recursive() const { return has("recursive") || has("-R"); }
  /// --key, for commands that ask the servers themselves.
  void key_option();
  /// A positional argument, in order; `many`: all that remain.
  void positional(const std::string& name, bool many = false);

  /// False: --help was asked for and has been printed.
  bool parse(const std::vector<std::string>& arguments);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& name) const { return values_[name].as<std::string>(); }
  std::string text_or(const std::string& name, const std::string& otherwise) const {
    return has(name) ? text(name) : otherwise;
  }
  std::vector<std::string> texts(const std::string& name) const;
  /// A positional argument that must be there.
  std::string required(const std::string& name) const;
  /// A size in bytes: "65536", "64K", "64KiB", "1.5G".
  std::uint64_t bytes(const std::string& name, std::uint64_t otherwise) const;

  std::uint32_t number(const std::string& name, std::uint32_t otherwise) const {
    return has(name) ? values_[name].as<std::uint32_t>() : otherwise;
  }

  double real(const std::string& name, double otherwise) const {
    return has(name) ? values_[name].as<double>() : otherwise;
  }

  /// The URL that the argument `name` gives, or --store, or OOC_STORE.
  std::string store_url(const std::string& name) const;
  /// The store named by --store or OOC_STORE, which must exist.
  ooc::store open_store(bool create = false) const;
  /// The store that `option` names, which must exist; otherwise open_store().
  ooc::store open_store_of(const std::string& option) const;
  /// The place that an argument names (named_path.hpp), in the store of its URL, or of `option` or --store.
  located locate(const std::string& argument, const std::string& option = "store") const;
  /// The same with wildcards: all that they match.
  std::vector<located> locate_matches(const std::string& argument) const;
  /// Those of the argument `name` that may be given many times, at least once.
  std::vector<located> locate_all(const std::string& name) const;

 private:
  const command& command_;
  po::options_description options_;
  po::options_description hidden_;
  po::positional_options_description positions_;
  po::variables_map values_;
  mutable std::map<std::string, ooc::store> stores_;  ///< of locate(), by URL
};

/// "ooc: <what>", in one line on standard error; returns `failed`.
int complain(std::string what);

/// "64KiB" -> 65536.  Throws usage_mistake, naming `option`.
std::uint64_t parse_bytes(const std::string& text, const std::string& option);

/// The number of a node.  Throws usage_mistake.
std::uint32_t node_number(const std::string& text);

/// The folder of one node, with the escapes of a "local:" URL.  Throws usage_mistake where several are named.
std::filesystem::path folder_of_node(const std::string& text);

/// "3x4" or "3,4" -> {3, 4}.  Throws usage_mistake, naming `option`.
std::vector<std::uint64_t> parse_shape(const std::string& text, const std::string& option);

}  // namespace ooc::tool
