#include "storage/service/snapshots.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

// How often it begins anew because the files have gone on to later commits meanwhile.
constexpr int most_attempts = 100;

void check_name(std::string_view name) {
  if (name.empty() || name.find_first_of(std::string_view("/@\0", 3)) != name.npos)
    refuse("'" + std::string(name) + "' cannot name a snapshot: a name is not empty and has no '/', '@' or zero byte");
}

std::string snapshot_path(std::string_view path, std::string_view name) {
  return std::string(path) + "@" + std::string(name);
}

bool is_as_before(metadata_service& metadata, const entry& e) {
  const entry now = metadata.find(e.id, true);
  return now.commit && now.commit->number == e.commit->number;
}

// The files as of their last commits, all of which were the last ones at one and the same moment: they were so before
// the last of them was opened, and still are after it.  Empty: they were not.
std::vector<opened_file> open_together(store_core& store, std::span<const std::string> paths) {
  std::vector<opened_file> files;
  for (const std::string& path : paths) {
    files.push_back(store.open(path, open_mode::read));
    const entry& e = files.back().meta;
    if (!e.commit)
      refuse(errc::invalid_request, path,
             "it was made without commits, and only a commit can be kept: copy it (`ooc cp`, `ooc::copy`), with "
             "--commits to one that has some");
    if (e.commit->number == 0) refuse(errc::invalid_request, path, "nothing of it was committed yet");
  }
  if (!std::ranges::all_of(files, [&](const opened_file& f) { return is_as_before(store.metadata(), f.meta); }))
    return {};
  return files;
}

// A file that has no name before publish(), and goes with this object where that is not called.
class snapshot_file {
 public:
  snapshot_file(store_core& store, const opened_file& of, std::string_view name)
      : store_(store), of_(of.meta), path_(snapshot_path(of.meta.path, name)) {
    new_file f;
    f.size = of_.size;
    f.sparse = true;  // it is to take no space of its own
    f.fill = of_.fill;
    f.array = of_.array;
    f.striping = of_.striping;
    f.nodes = of_.nodes;
    f.mode = of_.mode | 0200;
    f.attributes = of_.attributes;
    for (const auto& [key, value] : of_.commit->attributes) f.attributes["ooc.commit." + key] = value;
    f.attributes["ooc.snapshot_of"] = of_.path + ", commit " + std::to_string(of_.commit->number);
    file_ = store_.make(path_, f);
    if (file_.meta.nodes == of_.nodes && file_.meta.striping == of_.striping) return;
    store_.abandon(file_);
    refuse(errc::invalid_request, path_,
           "'" + of_.path +
               "' lies on nodes that are being emptied, and so would its snapshot: move it first, with "
               "`ooc restripe`");
  }
  ~snapshot_file() {
    if (!published_) store_.abandon(file_);
  }
  snapshot_file(const snapshot_file&) = delete;
  snapshot_file& operator=(const snapshot_file&) = delete;

  failure fill(const opened_file& of, bool copies) {
    if (failure f = of.file->clone_objects(file_.file->shape_handle(), copies)) return f;
    return file_.file->sync();
  }

  entry publish() {
    published_ = true;  // commit() abandons it where it fails
    store_.commit(file_);
    store_.set_mode(path_, of_.mode & 0555);
    store_.sync_entry(file_);
    return store_.metadata().lookup(path_);
  }

 private:
  store_core& store_;
  const entry& of_;
  const std::string path_;
  opened_file file_;
  bool published_ = false;
};

// Empty where a commit was made meanwhile, so that what there was to keep may be gone.
std::vector<entry> try_to_make(store_core& store, std::span<const opened_file> files, std::string_view name,
                               const snapshot_options& options) {
  std::vector<std::unique_ptr<snapshot_file>> made;
  for (const opened_file& f : files) {
    made.push_back(std::make_unique<snapshot_file>(store, f, name));
    const failure why = made.back()->fill(f, options.copy);
    if (why.code == errc::conflict && !is_as_before(store.metadata(), f.meta)) return {};
    throw_if(why);
  }
  std::vector<entry> snapshots;
  for (const auto& s : made) snapshots.push_back(s->publish());
  return snapshots;
}

}  // namespace

std::vector<entry> make_snapshots(store_core& store, std::span<const std::string> paths, std::string_view name,
                                  const snapshot_options& options) {
  check_name(name);
  if (paths.empty()) refuse("a snapshot is of one array at least");
  if (std::set(paths.begin(), paths.end()).size() != paths.size()) refuse("an array is given twice");
  for (int i = 0; i < most_attempts; ++i) {
    const std::vector<opened_file> files = open_together(store, paths);
    if (files.size() != paths.size()) continue;
    std::vector<entry> made = try_to_make(store, files, name, options);
    if (made.size() == paths.size()) return made;
  }
  refuse(errc::busy, paths.front(), "its commits follow one another faster than a snapshot can be made");
}

}  // namespace ooc::storage
