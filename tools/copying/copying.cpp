#include "copying/copying.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/interrupt.hpp"
#include "base/named_path.hpp"
#include "copying/array_to_read.hpp"
#include "copying/byte_copy.hpp"
#include "copying/salvage.hpp"
#include "copying/target_striping.hpp"
#include "oocarray/error.hpp"
#include "progress/progress.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

/// Tells the arguments that name plain files from those that name something in a store.
class argument_reader {
 public:
  argument_reader(const command_line& line, const std::vector<std::string>& arguments) : line_(line) {
    const bool store_named = line.has("store") || line.has("from") || line.has("to");
    // As with scp, where a URL says what is elsewhere, the rest is here.
    rest_is_plain_ = !store_named && std::any_of(arguments.begin(), arguments.end(), is_url);
  }

  struct named {
    std::shared_ptr<file_tree> tree;
    std::vector<std::string> paths;  ///< what wildcards match
    bool plain = false;
  };

  /// `option`: that names the store of paths without a URL, where it is given.
  named read(const std::string& argument, const std::string& option, bool wildcards) {
    if (const auto path = path_of_host(argument)) return {host_, {*path}, true};
    const located l = line_.locate(argument, option);
    auto& tree = trees_[l.store.core().get()];
    if (!tree) tree = tree_of_store(l.store, line_);
    if (!wildcards) return {tree, {trimmed(l.path)}};
    return {tree, expand(l.store.core()->metadata(), l.path)};
  }
  /// `within_files`: it may be an array within a plain file.
  named read_source(const std::string& argument, bool within_files) {
    const auto path = path_of_host(argument);
    if (path && within_files && is_within_file(*path)) return {in_place_, {*path}, true};
    return read(argument, "from", true);
  }

 private:
  std::optional<std::string> path_of_host(const std::string& argument) const {
    if (auto path = plain_path(argument)) return path;
    return !is_url(argument) && (rest_is_plain_ || argument == "-") ? std::optional(argument) : std::nullopt;
  }

  const command_line& line_;
  bool rest_is_plain_;
  std::shared_ptr<file_tree> host_ = tree_of_host(), in_place_ = tree_of_arrays_in_place();
  std::map<storage::store_core*, std::shared_ptr<file_tree>> trees_;  // whose stores `line_` holds
};

/// The name that a source has in the folder that receives it.
std::string name_of(const std::string& path, bool plain) {
  if (!plain) return last_name(path);
  const auto name = std::filesystem::path(trimmed(path) + "/").parent_path().filename();
  return name == "." || name == ".." ? "" : name.string();
}

const char* described(const entry& e) { return e.kind == entry_kind::folder ? "a folder" : "a file"; }

/// One of two things under the same name may have to go.  False: it is left out.
bool may_take_place(const command_line& line, const transfer& t, const entry& there, bool merge) {
  const bool folder = t.source.kind == entry_kind::folder;
  if (there.kind == entry_kind::folder || folder) {
    if ((there.kind == entry_kind::folder) != folder)
      throw usage_mistake("'" + t.target + "' is there already, and is " + described(there) +
                          "; take another name, or remove it first");
    if (!merge && !t.to->list(t.target).empty())
      throw usage_mistake("'" + t.target + "' is there already, and is a folder with something in it");
    return true;
  }
  if (line.has("no-clobber") || line.has("skip-existing")) return false;
  t.to->check_unused(there, "replaced");
  return true;
}

}  // namespace

bool is_standard_stream(const file_tree& tree, const std::string& path) {
  return path == "-" && tree.identity().empty();
}

void add_transfer_options(command_line& line) {
  line.option()("from", po::value<std::string>()->value_name("URL"), "the store of SOURCE; otherwise as --store");
  line.option()("to", po::value<std::string>()->value_name("URL"), "the store of DESTINATION; otherwise as --store");
  line.option()("no-clobber,n", "leave out files whose destination is there already");
  line.option()("skip-existing", "the same");
  line.option()("force,f", "replace files that are there, which is done without it, too; -n comes before it");
  add_striping_options(line);
  line.option()("commits", "make arrays that keep their last commit; otherwise as their sources");
  line.option()("flatten", "make arrays without commits");
  line.option()("buffer", po::value<std::string>()->value_name("BYTES"),
                "memory for each of the two buffers; otherwise 32MiB");
  line.option()("quiet,q", "no progress bar");
  line.positional("SOURCE", true);
}

namespace {

/// SOURCE `path`, and what it becomes; nothing where it is left out.
std::optional<transfer> transfer_of(const command_line& line, const argument_reader::named& from,
                                    const std::string& path, const argument_reader::named& to,
                                    const std::string& target, bool into, bool merge, std::set<std::string>& taken) {
  const bool output = is_standard_stream(*to.tree, target);
  const auto source = from.tree->look(path);
  if (!source) throw usage_error({ENOENT, std::generic_category()}, "'" + path + "' does not exist");
  transfer t{from.tree, to.tree, *source, target, false};
  if (into) {
    const bool input = is_standard_stream(*from.tree, path);
    const std::string name = input ? "" : name_of(source->path, from.plain);
    if (input) throw usage_mistake("'" + target + "' is a folder; say which name standard input is to have in it");
    t.target = name.empty() ? target : join(target, name);
  }
  if (output && (source->kind == entry_kind::folder || source->kind == entry_kind::link))
    throw usage_mistake("'" + path + "' is " + (source->kind == entry_kind::folder ? "a folder" : "a symbolic link") +
                        ", and standard output takes files only");
  const bool same_tree = from.tree->identity() == to.tree->identity();
  if (same_tree && source->path == t.target) throw usage_mistake("'" + path + "' and '" + t.target + "' are the same");
  if (same_tree && source->kind == entry_kind::folder &&
      (t.target + "/").starts_with(source->path.empty() ? "" : source->path + "/"))
    throw usage_mistake("'" + source->path + "' cannot be put into itself");
  if (!output && !taken.insert(t.target).second)
    throw usage_mistake("two sources would both become '" + t.target + "'");
  if (const auto there = output ? std::nullopt : t.to->look(t.target)) {
    t.exists = true;
    if (!may_take_place(line, t, *there, merge)) return std::nullopt;
  }
  return t;
}

}  // namespace

std::vector<transfer> transfers(const command_line& line, bool merge, failures& bad, bool within_files) {
  auto arguments = line.texts("SOURCE");
  if (arguments.empty()) throw usage_mistake("SOURCE and DESTINATION are missing; see --help");
  if (arguments.size() == 1) throw usage_mistake("DESTINATION is missing after '" + arguments[0] + "'; see --help");
  argument_reader reader(line, arguments);
  const auto to = reader.read(arguments.back(), "to", false);
  arguments.pop_back();
  const std::string target = to.plain ? to.paths[0] : trimmed(to.paths[0]);
  const auto receiver = to.tree->look(target);
  const bool output = is_standard_stream(*to.tree, target);
  const bool into = receiver && receiver->kind == entry_kind::folder;

  std::vector<argument_reader::named> sources;
  std::size_t count = 0;
  for (const std::string& argument : arguments) {
    sources.push_back(reader.read_source(argument, within_files));
    count += sources.back().paths.size();
    if (sources.back().plain && to.plain)
      throw usage_mistake("'" + argument + "' and '" + target +
                          "' are both plain files, which cp(1) and mv(1) are for; a path in a store needs --store, "
                          "OOC_STORE or a URL; `ooc export` copies arrays from one to another");
  }
  if (count > 1 && !into && !output)
    throw usage_mistake("'" + target + "' is no folder, and several sources need one; make it with `ooc mkdir`");

  std::vector<transfer> all;
  std::set<std::string> taken;
  for (const auto& from : sources)
    for (const std::string& path : from.paths) {
      try {
        if (auto t = transfer_of(line, from, path, to, target, into, merge, taken)) all.push_back(std::move(*t));
      } catch (const error& e) {
        bad.add(e.what());
      }
    }
  return all;
}

namespace {

/// The entries that are copied, in an order in which folders come before what is in them.
struct plan {
  std::vector<transfer> items;
  std::uint64_t bytes = 0;
  std::set<std::string> incomplete;  ///< targets that are not all of their sources

  void add(const command_line& line, const transfer& t, failures& bad) {
    items.push_back(t);
    if (t.source.kind != entry_kind::folder) {
      bytes += storage::stored_size(t.source);
      return;
    }
    std::vector<entry> inside;
    try {
      inside = t.from->list(t.source.path);
    } catch (const error& e) {
      lose(t.target, bad, e);
    }
    for (const entry& below : inside) {
      transfer b{t.from, t.to, below, join(t.target, last_name(below.path)), false, t.moved};
      if (below.kind != entry_kind::folder && below.kind != entry_kind::file && below.kind != entry_kind::link) {
        lose(b.target, bad, usage_mistake("'" + below.path + "' is a FIFO, a socket or a device, which is not copied"));
        continue;
      }
      try {
        if (const auto there = t.to->look(b.target)) {
          b.exists = true;
          if (!may_take_place(line, b, *there, true)) continue;
        }
      } catch (const error& e) {
        lose(b.target, bad, e);
        continue;
      }
      add(line, b, bad);
    }
  }

  void lose(const std::string& target, failures& bad, const std::exception& why) {
    incomplete.insert(target);
    bad.add(why.what());
  }
  /// Whether it, or something in it, is missing.
  bool lacks(const std::string& target) const {
    const std::string inside = target.empty() ? "" : target + "/";
    const auto first = incomplete.lower_bound(inside);
    return incomplete.contains(target) || (first != incomplete.end() && first->starts_with(inside));
  }
  /// Whether a folder that it would be in is missing.
  bool is_below_missing(const std::string& target) const {
    return std::any_of(incomplete.begin(), incomplete.end(),
                       [&](const std::string& folder) { return target.starts_with(folder + "/"); });
  }
};

/// 0: whichever commit the copy is of.
std::uint64_t since_of(const command_line& line) {
  const std::string given = line.text("since");
  if (given == "copied") return 0;
  std::uint64_t commit = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), commit);
  if (error != std::errc() || end != given.data() + given.size() || commit == 0)
    throw usage_mistake("--since is the number of a commit, from 1, or 'copied', not '" + given + "'");
  return commit;
}

/// Parts of the copy that are filled, for want of the bytes, are left to `p` and `bad`, too.
void copy_file(const command_line& line, const transfer& t, std::uint64_t buffer, progress* bar, plan& p,
               failures& bad) {
  if (t.moved) t.from->check_unused(t.source, "moved out of its store");
  const auto source = t.from->open(t.source);
  std::optional<salvage> rescue = salvage::of(line, source->meta);
  if (rescue) {
    source->rescue = &*rescue;
    buffer = std::max(rescue->element_size(), buffer / rescue->element_size() * rescue->element_size());
  }
  std::unique_ptr<byte_target> target;
  if (line.has("since") && t.exists && source->meta.commit) target = t.to->update(t.target, *source, since_of(line));
  if (!target) target = t.to->make(t.target, *source);
  copy_bytes(*source, *target, buffer, [bar](std::uint64_t bytes) {
    if (bar) bar->advance(bytes);
  });
  target->publish();
  if (!rescue || !rescue->lost_any()) return;
  p.incomplete.insert(t.target);
  bad.add(rescue->report(t.source.path));
}

void copy_item(const command_line& line, const transfer& t, std::uint64_t buffer, progress* bar, plan& p,
               failures& bad) {
  if (p.is_below_missing(t.target)) return;
  try {
    if (t.source.kind == entry_kind::folder)
      t.to->make_folder(t.target, t.source);
    else if (t.source.kind == entry_kind::link)
      t.to->make_link(t.target, t.source.target);
    else
      copy_file(line, t, buffer, bar, p, bad);
  } catch (const error& e) {
    p.lose(t.target, bad, e);
  } catch (const usage_mistake& e) {  // --salvage with a value that this array cannot have
    p.lose(t.target, bad, e);
  }
}

}  // namespace

void copy(const command_line& line, const std::string& label, const std::vector<transfer>& all,
          const std::function<void(const std::vector<transfer>&)>& done, failures& bad) {
  const std::uint64_t buffer = std::max<std::uint64_t>(4096, line.bytes("buffer", 32_MiB));
  if (line.has("since")) (void)since_of(line);  // before anything is copied
  std::vector<plan> plans;
  std::uint64_t bytes = 0;
  for (const transfer& t : all) {
    plans.emplace_back().add(line, t, bad);
    bytes += plans.back().bytes;
  }
  catch_interrupts();
  std::optional<progress> bar;
  if (!line.has("quiet")) bar.emplace(label, bytes);
  for (std::size_t i = 0; i < all.size(); ++i) {
    plan& p = plans[i];
    for (const transfer& t : p.items) copy_item(line, t, buffer, bar ? &*bar : nullptr, p, bad);
    // From the innermost outwards: a folder that is closed to its owner is closed last.
    for (auto t = p.items.rbegin(); t != p.items.rend(); ++t) {
      if (t->source.kind != entry_kind::folder || t->target.empty() || p.is_below_missing(t->target)) continue;
      try {
        t->to->finish_folder(t->target, t->source);
      } catch (const error& e) {
        p.lose(t->target, bad, e);
      }
    }
    all[i].to->sync();
    std::erase_if(p.items, [&](const transfer& t) { return p.lacks(t.target) || p.is_below_missing(t.target); });
    done(p.items);
  }
  if (bar) bar->finish();
}

}  // namespace ooc::tool
