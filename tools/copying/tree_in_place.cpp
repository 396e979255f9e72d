// file_tree: arrays within plain files, datasets of HDF5 and arrays of Zarr, which are only read.
#include <utility>

#include "copying/array_to_read.hpp"
#include "copying/file_tree.hpp"
#include "oocarray/error.hpp"

namespace ooc::tool {

namespace {

using storage::entry;

class tree_in_place : public file_tree {
 public:
  std::optional<entry> look(const std::string& path) override {
    entry e = opened(path).file.meta;
    e.path = path;
    return e;
  }
  std::vector<entry> list(const std::string& folder) override { refuse(folder, "has no names in it"); }
  std::unique_ptr<byte_source> open(const entry& e) override {
    array_to_read& a = opened(e.path);
    a.file.meta.path = e.path;
    return source_of(a.file, identity(), a.in_place->chunks ? a.in_place->chunks->extents.back() : 0);
  }
  std::unique_ptr<byte_target> make(const std::string& path, const byte_source&) override { refuse(path); }
  std::unique_ptr<byte_target> update(const std::string& path, byte_source&, std::uint64_t) override { refuse(path); }
  void make_folder(const std::string& path, const entry&) override { refuse(path); }
  void finish_folder(const std::string& path, const entry&) override { refuse(path); }
  void make_link(const std::string& path, const std::string&) override { refuse(path); }
  void check_unused(const entry& e, const char*) override { refuse(e.path); }
  void move(const entry& from, const std::string&) override { refuse(from.path); }
  void remove(const entry& e) override { refuse(e.path); }
  void sync() override {}
  std::string identity() const override { return "arrays in place"; }

 private:
  [[noreturn]] static void refuse(const std::string& path, const char* why = "is only read") {
    throw usage_mistake("'" + path + "' is an array within a file, and " + why + ": `ooc cp` copies it into a store");
  }

  /// The last one stays open, as it is looked at before it is copied.
  array_to_read& opened(const std::string& path) {
    if (!last_ || path_ != path) last_ = open_in_place(path);
    path_ = path;
    return *last_;
  }

  std::string path_;
  std::optional<array_to_read> last_;
};

}  // namespace

std::unique_ptr<file_tree> tree_of_arrays_in_place() { return std::make_unique<tree_in_place>(); }

}  // namespace ooc::tool
