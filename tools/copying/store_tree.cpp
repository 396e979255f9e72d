// file_tree: the names and bytes of a store.
#include <algorithm>

#include "base/named_path.hpp"
#include "copying/byte_copy.hpp"
#include "copying/commit_copy.hpp"
#include "copying/file_tree.hpp"
#include "copying/restripe.hpp"
#include "copying/salvage.hpp"
#include "copying/target_striping.hpp"
#include "oocarray/error.hpp"
#include "storage/layout/box_requests.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/layout/placement.hpp"
#include "storage/service/changed_bytes.hpp"
#include "storage/service/file_move.hpp"
#include "storage/service/growing_file.hpp"
#include "storage/service/store_core.hpp"
#include "storage/service/under_name.hpp"
#include "storage/service/unpublished_file.hpp"

namespace ooc::tool {

namespace {

using storage::entry;
using storage::entry_kind;

class store_source : public byte_source {
 public:
  store_source(storage::opened_file f, const std::string& store_uuid, std::uint64_t chunk = 0)
      : file_(std::move(f)), origin_(store_uuid + ":" + std::to_string(file_.meta.id)), chunk_(chunk) {
    meta = file_.meta;
  }
  std::string origin() const override { return meta.commit ? origin_ : ""; }
  void leave_out_before(std::uint64_t since) override {
    changes_.emplace(meta.striping, meta.size, file_.file->find_changes(since));
  }
  std::size_t next(std::span<std::byte> out) override {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), meta.size - at_));
    if (rescue)
      read_what_is_left(n, out.data());
    else if (n != 0)
      throw_if(file_.file->read(request::contiguous(at_, n), out.data()));
    at_ += n;
    return n;
  }
  std::uint64_t skip() override {
    const std::uint64_t from = at_;
    for (std::uint64_t before = meta.size; at_ != before;) {
      before = at_;
      at_ = next_part(1).begin;
    }
    return at_ - from;
  }
  std::uint64_t together() const override {
    constexpr std::uint64_t enough = 64_MiB;
    return next_part(enough).end - at_;
  }

 private:
  /// What is to be copied at or behind at_: not tiles that are no part of the array (never written, or cut off), nor
  /// what has not changed.  It ends where either may begin, and where it is `most` bytes long it may end, too.
  storage::byte_interval next_part(std::uint64_t most) const {
    storage::byte_interval p{at_, meta.size};
    if (at_ < p.end && has_reserved_grid(meta.array)) p = storage::next_tiles(meta.array, at_);
    if (!changes_) return p;
    const auto changed = changes_->next(p.begin, most);
    return changed ? storage::byte_interval{changed->begin, std::min(p.end, changed->end)}
                   : storage::byte_interval{meta.size, meta.size};
  }

  void read_what_is_left(std::size_t bytes, std::byte* out) {
    const std::uint64_t each = rescue->element_size(), end = (at_ + bytes) / each;
    std::uint64_t first = at_ / each, row_begin = 0, row = end;
    if (chunk_ != 0) {  // row by row
      if (!file_.file->read(request::contiguous(at_, bytes), out)) return;
      row = meta.array.extents.back();
      row_begin = first / row * row;
    }
    for (; first < end; first = row_begin += row) {
      const std::uint64_t until = std::min(end, row_begin + row);
      rescue->read(first - row_begin, until - row_begin, chunk_, first, out,
                   [&](std::uint64_t from, std::uint64_t to, std::byte* memory) {
                     return file_.file->read(request::contiguous((row_begin + from) * each, (to - from) * each),
                                             memory);
                   });
      out += (until - first) * each;
    }
  }

  storage::opened_file file_;
  const std::string origin_;
  const std::uint64_t chunk_;
  std::optional<storage::changed_bytes> changes_;
  std::uint64_t at_ = 0;
};

class store_target : public byte_target {
 public:
  /// `instead_of`: the file whose place it takes.
  store_target(storage::store_core& core, std::string path, const byte_source& from, storage::new_file f,
               std::optional<entry> instead_of = {})
      : core_(core),
        path_(std::move(path)),
        from_(from),
        made_(std::move(f)),
        instead_of_(std::move(instead_of)),
        // The file of a stream has a name from the beginning on, because only such a file can grow.
        unpublished_(
            core_, path_, storage::passing_path(path_), made_,
            from_.is_stream ? storage::unpublished_file::named::at_once : storage::unpublished_file::named::at_last) {}

  void append(std::span<std::byte> bytes) override {
    storage::opened_file& file = unpublished_.file;
    if (const std::uint64_t end = at_ + bytes.size(); end > file.meta.size)
      file = storage::with_space_if_there_is(end, [&](std::uint64_t size) { return core_.grow(file, size); });
    // Of a sparse file only what differs from its fill takes space, as in the source.
    const std::size_t step = made_.sparse ? 64_KiB : bytes.size();
    request wanted;
    for (std::size_t i = 0; i < bytes.size(); i += step) {
      const auto part = bytes.subspan(i, std::min(step, bytes.size() - i));
      if (!made_.sparse || !storage::is_filled_with(made_.fill, at_ + i, part)) wanted.add(at_ + i, i, part.size());
    }
    throw_if(file.file->write(wanted, bytes.data()));
    at_ += bytes.size();
  }
  void skip(std::uint64_t bytes) override { at_ += bytes; }

  void publish() override {
    if (instead_of_) return unpublished_.take_over(*instead_of_);
    if (from_.is_stream)
      storage::under_name(unpublished_.passing(), path_, [&] {
        storage::opened_file& file = unpublished_.file;
        if (file.meta.size != at_) file = core_.resize(file, at_, {});
        if (made_.mode != from_.meta.mode) core_.set_mode(unpublished_.passing(), from_.meta.mode);
      });
    unpublished_.publish(from_.meta.attributes, true, given_with_copy(from_, 1));
  }

 private:
  storage::store_core& core_;
  const std::string path_;
  const byte_source& from_;
  const storage::new_file made_;
  const std::optional<entry> instead_of_;
  storage::unpublished_file unpublished_;
  std::uint64_t at_ = 0;
};

storage::new_file file_like(const entry& from) {
  storage::new_file f;
  f.size = from.size;
  f.sparse = from.sparse;
  f.fill = from.fill;
  f.array = from.array;
  if (has_reserved_grid(f.array)) f.array.reached = f.array.extents;  // the rest is not copied
  f.mode = from.mode;
  return f;
}

class store_tree : public file_tree {
 public:
  store_tree(const ooc::store& store, const command_line& line)
      : store_(store), core_(*store.core()), names_(core_.metadata()), line_(line) {}

  std::optional<entry> look(const std::string& path) override { return lookup_if_there(names_, path); }
  std::vector<entry> list(const std::string& folder) override { return names_.list(folder); }

  std::unique_ptr<byte_source> open(const entry& e) override {
    return source_of(core_.open(e.path, storage::open_mode::read), core_.uuid());
  }

  std::unique_ptr<byte_target> make(const std::string& path, const byte_source& from) override {
    if (const auto there = look(path))
      check_unused(*there, "replaced");
    else if (!look(folder_of(path)))
      throw usage_error({ENOENT, std::generic_category()}, "'" + path +
                                                               "' cannot be made, because there is no folder '" +
                                                               folder_of(path) + "'; `ooc mkdir -p` makes it");
    storage::new_file f = file_like(from.meta);
    if (from.is_stream) {
      f.size = 0;
      f.mode |= 0600;  // until it has grown
    }
    f.commits = !f.array.extents.empty() && (from.meta.commit || line_.has("commits")) && !line_.has("flatten");
    f.striping = target_striping(line_, f.array, f.size, store_.nodes());
    return std::make_unique<store_target>(core_, path, from, std::move(f));
  }

  std::unique_ptr<byte_target> update(const std::string& path, byte_source& from, std::uint64_t since) override {
    return update_copy(core_, names_.lookup(path), from, since);
  }

  void make_folder(const std::string& path, const entry& like) override {
    if (!path.empty()) names_.mkdir(path, like.mode | 0700, true);
  }
  void finish_folder(const std::string& path, const entry& like) override {
    if (path.empty()) return;
    for (const auto& [key, value] : like.attributes)
      if (!storage::is_of_store(key)) names_.set_attribute(path, key, value);
    if ((like.mode & 0700) != 0700) names_.set_mode(path, like.mode);
  }
  void make_link(const std::string& path, const std::string& target) override {
    storage::new_entry link;
    link.kind = entry_kind::link;
    link.mode = 0777;
    link.target = target;
    if (look(path)) core_.remove(path);
    (void)names_.make(path, link);
  }

  void check_unused(const entry& e, const char* to_be) override { (void)core_.claim_unused(e, to_be); }
  void move(const entry& from, const std::string& to) override {
    if (look(to))
      core_.replace(from.path, to);
    else
      names_.rename(from.path, to);
  }
  void remove(const entry& e) override {
    const auto claim = core_.claim_unused(e, "removed");
    if (const entry now = names_.lookup(e.path); now.id != e.id || now.generation != e.generation)
      throw usage_error(errc::conflict,
                        "'" + e.path + "' has been written or replaced while it was copied, and stays; move it again");
    core_.remove(e.path);
  }
  void sync() override { names_.sync(); }
  std::string identity() const override { return store_.uuid(); }

 private:
  ooc::store store_;
  storage::store_core& core_;
  storage::metadata_service& names_;
  const command_line& line_;
};

}  // namespace

void restripe(storage::store_core& core, const entry& file, const striping& s, const storage::node_list& nodes,
              std::uint64_t buffer, const std::function<void(std::uint64_t)>& step) {
  const storage::file_move move(core, file, "moved to other nodes");
  storage::opened_file bytes = move.from();
  storage::new_file f = file_like(bytes.meta);
  f.striping = s;
  f.nodes = nodes;
  f.mode |= 0600;
  f.commits = bytes.meta.commit.has_value();
  if (f.commits && bytes.meta.commit->number != 0) f.commit = bytes.meta.commit->number - 1;
  if (!bytes.meta.codec.empty()) {  // it stays packed
    f.codec = bytes.meta.codec;
    f.packed = bytes.meta.size = bytes.meta.reserved;
    bytes.meta.array = {};
    bytes.file = std::make_shared<const storage::striped_file>(bytes.file->shape_handle(), core.nodes());
  }
  store_source from(std::move(bytes), core.uuid());
  store_target to(core, file.path, from, std::move(f), move.from().meta);
  copy_bytes(from, to, buffer, step);
  to.publish();
}

std::unique_ptr<byte_source> source_of(storage::opened_file f, const std::string& store_uuid, std::uint64_t chunk) {
  return std::make_unique<store_source>(std::move(f), store_uuid, chunk);
}

std::unique_ptr<file_tree> tree_of_store(const ooc::store& store, const command_line& line) {
  return std::make_unique<store_tree>(store, line);
}

}  // namespace ooc::tool
