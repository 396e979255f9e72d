#include "runtime/array/array_file.hpp"

#include <vector>

#include "oocarray/error.hpp"
#include "runtime/geometry/array_geometry.hpp"

namespace ooc::detail {
namespace {

constexpr const char* holder = "an ooc_array";

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', last);
  return last == std::string::npos || slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

writing writing_as(const array_request& r) {
  if (r.action == array_request::how::open_read_only) return writing::no;
  if (r.options.owner_computes) return writing::exclusive;  // for all ranks, whose parts are apart
  return r.options.shared || r.options.group ? writing::shared : writing::exclusive;
}

void array_file::create(const array_request& r, const array_plan& plan) {
  storage::store_core& core = *store_;
  storage::new_file f;
  f.size = plan.geometry.file_bytes();
  f.striping = plan.stripes;
  f.sparse = r.options.sparse;
  f.fill = r.fill;
  f.array = plan.description;
  f.mode = r.options.mode;

  if (const std::string parent = parent_of(path_); !parent.empty()) {
    try {
      core.metadata().mkdir(parent, 0755, true);
    } catch (const error& e) {
      if (e.code() != std::errc::file_exists) throw;
      throw usage_error(
          std::make_error_code(std::errc::not_a_directory),
          "'" + path_ + "' cannot be made: '" + parent + "' or a part of it is a file");
    }
  }
  if (r.options.replace) {
    try {
      const storage::entry old = core.metadata().lookup(path_);
      if (old.kind == storage::entry_kind::file) {
        const file_claim unused(core, old.id, path_, holder, writing::exclusive,
                                r.options.wait_for_writer);
        core.remove(path_);
      } else {
        throw usage_error(std::make_error_code(std::errc::is_a_directory),
                          "'" + path_ + "' is a folder, and options.replace replaces files only: take "
                          "another name, or remove the folder first");
      }
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
    }
  }
  try {
    opened_ = core.create(path_, f);
  } catch (const error& e) {
    if (e.code() != std::errc::file_exists) throw;
    if (core.metadata().lookup(path_).kind == storage::entry_kind::folder)
      throw usage_error(e.code(), "'" + path_ +
                                      "' exists already, as a folder: take another name, or remove the "
                                      "folder first");
    throw usage_error(e.code(), "'" + path_ +
                                    "' exists already; open it with ooc::open, create it with "
                                    "options.replace = true, or take what is there with "
                                    "ooc::create_or_open");
  }
  claim(writing_as(r), r.options.wait_for_writer);
}

void array_file::open() {
  opened_ = store_->open(
      path_, writable_ ? storage::open_mode::read_write : storage::open_mode::read, unfinished_);
}

void array_file::claim(writing w, std::chrono::milliseconds patience) {
  claim_ = file_claim(*store_, opened_.meta.id, path_, holder, w, patience);
}

void array_file::make_durable() const {
  failure f = opened_.file->sync();
  if (f) f.what = "array '" + path_ + "' cannot be made durable: " + f.what;
  throw_if(f);
}

void array_file::make_entry_durable() const {
  store_->sync_entry(opened_);
}

std::map<std::string, std::string> array_file::attributes() const {
  return store_->metadata().find(entry().id).attributes;
}

void array_file::set_attribute(std::string_view key, std::string_view value) const {
  store_->metadata().set_attribute(store_->metadata().find(entry().id).path, key, value);
}

void array_file::remove_attribute(std::string_view key) const {
  store_->metadata().remove_attribute(store_->metadata().find(entry().id).path, key);
}

storage::opened_file array_file::resized(const array_geometry& now) const {
  return store_->resize(opened_, now.file_bytes(), {now.extents().begin(), now.extents().end()});
}

// A tiled file keeps whole tiles: rows that were cut off, or never existed, lie in the padding of
// its last row of tiles and become visible as it grows.
void array_file::fill_padding(const array_geometry& now) const {
  const std::vector<byte_run> padding = now.file_padding();
  if (padding.empty()) return;
  std::vector<std::byte> bytes(padding.front().length);  // all are of one length
  const std::vector<std::byte>& fill = opened_.meta.fill;
  if (!fill.empty())
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = fill[i % fill.size()];
  for (const byte_run& run : padding)
    throw_if(opened_.file->write(request::contiguous(run.offset, run.length), bytes.data()));
}

}  // namespace ooc::detail
