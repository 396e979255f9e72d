#include "runtime/array/array_file.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/geometry/array_geometry.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::detail {
namespace {

std::string parent_of(const std::string& path) {
  const std::size_t last = path.find_last_not_of('/');
  const std::size_t slash = path.find_last_of('/', last);
  return last == std::string::npos || slash == std::string::npos ? "" : path.substr(0, slash);
}

/// As array_file::epochs::nodes.  Throws EIO where something is lost.
std::vector<std::uint64_t> unsynced_epochs(const storage::striped_file& f) {
  const storage::file_shape& shape = f.shape();
  std::vector<std::uint64_t> all(shape.striping.nn);
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t) {
    if (shape.striping.object_size(t, shape.size) == 0) continue;  // nobody syncs it
    const storage::known_epoch k = f.node(t).epoch_of(shape);
    throw_if(k.lost);
    all[t] = k.unsynced_in;
  }
  if (std::ranges::count(all, 0U) == std::ssize(all)) all.clear();
  return all;
}

/// By who has synced the file: throws EIO where a node is in another epoch than another rank has told.
void require_epochs(const storage::striped_file& f, std::span<const std::uint64_t> of_another) {
  const storage::file_shape& shape = f.shape();
  for (std::uint32_t t = 0; t < of_another.size() && t < shape.striping.nn; ++t) {
    if (of_another[t] == 0) continue;
    const std::uint64_t now = f.node(t).epoch_of(shape).now;
    if (now != 0 && now != of_another[t])
      throw_if(storage::lost_with_power(f.node(t).name(), "array '" + shape.name + "'"));
  }
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
  f.sparse = r.options.sparse || has_reserved_grid(plan.description);  // else tiles that are not there had space
  f.fill = r.fill;
  f.array = plan.description;
  f.mode = r.options.mode;
  f.commits = r.options.commits;
  f.attributes = r.options.attributes;

  if (const std::string parent = parent_of(path_); !parent.empty()) {
    try {
      core.metadata().mkdir(parent, 0755, true);
    } catch (const error& e) {
      if (e.code() != std::errc::file_exists) throw;
      throw usage_error(std::make_error_code(std::errc::not_a_directory),
                        "'" + path_ + "' cannot be made: '" + parent + "' or a part of it is a file");
    }
  }
  if (r.options.replace) {
    try {
      const storage::entry old = core.metadata().lookup(path_);
      if (old.kind == storage::entry_kind::file) {
        const file_claim unused(core, old.id, path_, holder, writing::exclusive, r.options.wait_for_writer,
                                while_waiting_);
        core.remove(path_);
      } else {
        throw usage_error(std::make_error_code(std::errc::is_a_directory),
                          "'" + path_ +
                              "' is a folder, and options.replace replaces files only: take "
                              "another name, or remove the folder first");
      }
    } catch (const error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
    }
  }
  try {
    if (r.options.temporary) {
      opened_ = core.make(path_, f);
      temporary_ = true;
      storage::entry mine = opened_.meta;
      mine.claim = {mine.generation, true};  // nobody else knows it
      opened_ = core.opened(std::move(mine));
      return;
    }
    opened_ = core.create(path_, f);
  } catch (const error& e) {
    if (e.code() != std::errc::file_exists) throw;
    const auto there = storage::lookup_if_there(core.metadata(), path_);
    if (!there) throw;  // its maker only has it already
    if (there->kind == storage::entry_kind::folder)
      throw usage_error(e.code(), "'" + path_ +
                                      "' exists already, as a folder: take another name, or remove the "
                                      "folder first");
    throw usage_error(e.code(), "'" + path_ +
                                    "' exists already; open it with ooc::open, create it with "
                                    "options.replace = true, or take what is there with "
                                    "ooc::create_or_open");
  }
  const writing w = f.commits ? writing::exclusive : writing_as(r);  // for all ranks
  claim(entry(), w, r.options.wait_for_writer);
  opened_ = core.claimed(opened_, w == writing::exclusive);
}

void array_file::release() noexcept {
  claim_.release();
  if (std::exchange(temporary_, false) && !fault_handler::in_forked_child()) store_->abandon(opened_);
  if (!entry().in_place) return;
  // A file in place is a store of its own, which may keep chunks in memory.
  opened_.file.reset();
  store_.reset();
}

void array_file::open(writing w, std::chrono::milliseconds patience,
                      const std::function<void(const storage::entry&)>& check) {
  // Of one with commits others may have written what will be taken back.
  const auto checked = [&](const storage::entry& e) { check(e.commit ? store_->metadata().find(e.id, true) : e); };
  const auto take = [&](const storage::entry& e) {
    checked(e);
    // What is committed does not change under who reads it, whoever writes.
    if (e.commit && w == writing::no) return false;
    claim(e, e.commit && w == writing::shared ? writing::exclusive : w, patience);
    return true;
  };
  opened_ = store_->open(path_, writable_ ? storage::open_mode::read_write : storage::open_mode::read, unfinished_,
                         {take, w == writing::exclusive, true, checked});
}

array_file::epochs array_file::unsynced() const {
  const storage::known_epoch of_entry = store_->metadata().epoch_of(entry());
  throw_if(of_entry.lost);
  return {of_entry.unsynced_in, unsynced_epochs(*opened_.file)};
}

void array_file::make_durable(std::span<const epochs> of_others) const {
  failure f = opened_.file->sync();
  if (f) f.what = "array '" + path_ + "' cannot be made durable: " + f.what;
  throw_if(f);
  for (const epochs& e : of_others) require_epochs(*opened_.file, e.nodes);
}

void array_file::make_entry_durable(std::span<const epochs> of_others) const {
  store_->sync_entry(opened_);
  const std::uint64_t now = store_->metadata().epoch_of(entry()).now;
  for (const epochs& e : of_others)
    if (e.metadata != 0 && now != 0 && e.metadata != now)
      throw_if(storage::lost_with_power("the metadata server", "the entry of '" + path_ + "'"));
}

void array_file::made_durable_elsewhere(std::uint64_t before) const {
  store_->metadata().synced_elsewhere(before);
  const storage::file_shape& shape = opened_.file->shape();
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t) opened_.file->node(t).synced_elsewhere(shape, before);
}

std::map<std::string, std::string> array_file::attributes() const {
  return entry().at_commit ? entry().attributes : store_->metadata().find(entry().id).attributes;
}

void array_file::set_attribute(std::string_view key, std::string_view value) const {
  store_->metadata().set_attribute(current_path(), key, value);
}

void array_file::remove_attribute(std::string_view key) const {
  store_->metadata().remove_attribute(current_path(), key);
}

std::string array_file::current_path() const { return temporary_ ? path_ : store_->metadata().find(entry().id).path; }

storage::opened_file array_file::resized(const array_geometry& now) const {
  if (temporary_)
    refuse(errc::invalid_request, "array", path_, "it is temporary, and keeps the extents it was made with");
  return store_->resize(opened_, now.file_bytes(), {now.extents().begin(), now.extents().end()});
}

// A tiled file keeps whole tiles: what was cut off, or never existed, lies in the padding of its tiles, or in tiles
// that are there no longer, and becomes visible as the array grows.
void array_file::fill_uncovered(const array_geometry& was, const array_geometry& now) const {
  constexpr std::uint64_t most_bytes = 4 << 20;
  const std::vector<std::byte>& fill = opened_.meta.fill;
  const std::uint64_t most = std::max<std::uint64_t>(1, most_bytes / was.element_size());
  std::vector<std::byte> elements;
  const std::function<void(const index_box&)> write = [&](const index_box& box) {
    std::uint64_t count = 1;
    std::size_t longest = 0;
    for (std::size_t k = 0; k < was.rank(); ++k) {
      count *= box.upper[k] - box.lower[k];
      if (box.upper[k] - box.lower[k] > box.upper[longest] - box.lower[longest]) longest = k;
    }
    if (count > most) {
      index_box half = box;
      half.upper[longest] = box.lower[longest] + (box.upper[longest] - box.lower[longest]) / 2;
      write(half);
      half.lower[longest] = std::exchange(half.upper[longest], box.upper[longest]);
      return write(half);
    }
    const std::size_t bytes = count * was.element_size();
    for (std::size_t i = elements.size(); i < bytes; ++i)
      elements.push_back(fill.empty() ? std::byte{} : fill[i % fill.size()]);
    throw_if(opened_.file->write(was.packed_request(box), elements.data()));
  };
  was.for_each_uncovered(now, opened_.meta.array.reached, write);
}

}  // namespace ooc::detail
