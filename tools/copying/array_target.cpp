#include "copying/array_target.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/entry_text.hpp"
#include "base/named_path.hpp"
#include "oocarray/error.hpp"
#include "storage/layout/element_description.hpp"
#include "storage/service/unpublished_file.hpp"

namespace ooc::tool {

namespace {

/// Keeps its name for itself until it is complete, unless it needs no other.
class made_array : public array_target {
 public:
  made_array(const located& where, new_array made)
      : where_(where), path_(trimmed(where.path)), made_(std::move(made)), core_(*where_.store.core()) {
    const auto there = lookup_if_there(core_.metadata(), path_);
    if (there && !made_.replace)
      throw usage_error({EEXIST, std::generic_category()},
                        "'" + path_ + "' exists already; take another name, or --force to replace it");
    if (there && there->kind != storage::entry_kind::file)
      throw usage_error(std::make_error_code(std::errc::is_a_directory),
                        "'" + path_ + "' is no file, and only files are replaced; take another name");
    if (there) (void)core_.claim_unused(*there, "replaced");
    if (const std::string folder = folder_of(path_); !folder.empty() && !lookup_if_there(core_.metadata(), folder))
      core_.metadata().mkdir(folder, 0777, true);
    const bool passes = there || made_.as_array || !made_.attributes.empty();
    unpublished_.emplace(
        core_, path_, passes ? storage::passing_path(path_) : path_, made_.file,
        made_.as_array ? storage::unpublished_file::named::at_once : storage::unpublished_file::named::at_last);
    file_ = unpublished_->file;
    copied_ = made_.file.array;
    at_.assign(copied_.extents.size(), 0);
  }

  located as_array() override { return {where_.store, unpublished_->passing()}; }

  void publish() override { unpublished_->publish(made_.attributes, made_.replace); }

 private:
  const located where_;
  const std::string path_;
  const new_array made_;
  storage::store_core& core_;
  std::optional<storage::unpublished_file> unpublished_;
};

std::string element_text(const storage::array_description& a, const std::string& description) {
  return description.empty() ? a.element_type : description;
}

class filled_array : public array_target {
 public:
  filled_array(const located& where, const array_part& part) : where_(where), core_(*where_.store.core()) {
    if (!lookup_if_there(core_.metadata(), where.path))
      throw usage_error({ENOENT, std::generic_category()},
                        "'" + where.path + "' does not exist, and " + (part.at.empty() ? "--append" : "--at") +
                            " writes into an array that is there; import the first file without it" +
                            (part.at.empty() ? ", and with --max-extents to let the array grow" : ""));
    file_ = core_.open(where.path, storage::open_mode::read_write);
    claim_ = core_.claim_unused(file_.meta, "written");
    file_ = core_.refresh(file_);
    before_ = file_.meta.array.extents;
    check_elements(part);
    copied_ = part.elements;
    copied_.tile = file_.meta.array.tile;
    copied_.max_extents.clear();
    copied_.reached.clear();
    if (part.at.empty())
      grow(part.elements.extents);
    else
      place(part);
  }

  ~filled_array() override {
    if (published_ || grown_to_.empty()) return;
    try {
      if (!claim_) claim_ = core_.claim_unused(file_.meta, "cut off again");
      file_ = core_.refresh(file_);
      if (file_.meta.array.extents != grown_to_)
        throw usage_error(errc::busy, "it has " + shape_text(file_.meta.array.extents) + " by now");
      (void)resize(before_);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "ooc: what was appended cannot be cut off again; the array had %s: %s\n",
                   shape_text(before_).c_str(), e.what());
    }
  }

  located as_array() override {
    claim_.reset();  // for who opens it
    return where_;
  }

  void publish() override {
    core_.sync(file_);
    published_ = true;
  }

 private:
  std::string it() const { return "'" + file_.meta.path + "' (" + describe(file_.meta) + ")"; }

  void check_elements(const array_part& part) const {
    const storage::array_description& a = file_.meta.array;
    if (a.extents.empty())
      throw usage_error(errc::type_mismatch, "'" + file_.meta.path + "' is a plain file, not an array");
    const auto found = file_.meta.attributes.find(storage::dtype_attribute);
    const std::string description =
        found == file_.meta.attributes.end() || !a.element_type.starts_with("struct") ? "" : found->second;
    if (a.element_type != part.elements.element_type || a.element_size != part.elements.element_size ||
        description != part.description)
      throw usage_error(errc::type_mismatch, it() + " has elements of the type " + element_text(a, description) +
                                                 ", and the file elements of " +
                                                 element_text(part.elements, part.description) +
                                                 "; convert one of them");
    if (a.extents.size() != part.elements.extents.size())
      throw usage_error(errc::type_mismatch,
                        it() + " has other dimensions than the file, which holds " + shape_text(part.elements.extents));
  }

  /// Room for more rows, behind the last.
  void grow(const storage::index& more) {
    const storage::array_description& a = file_.meta.array;
    for (std::size_t d = 1; d < more.size(); ++d)
      if (more[d] != a.extents[d])
        throw usage_error(errc::type_mismatch, it() + " has other rows than the file, which holds " + shape_text(more) +
                                                   ": all extents but the first must be the same");
    const std::uint64_t most = a.max_extents.empty() ? a.extents[0] : a.max_extents[0];
    if (more[0] > most - std::min(most, a.extents[0]))
      throw usage_error(errc::invalid_request,
                        it() + " may have " + std::to_string(most) + " rows, and " + std::to_string(a.extents[0]) +
                            " and " + std::to_string(more[0]) +
                            " are more; --max-extents says how far an array may grow when it is imported first");
    at_.assign(more.size(), 0);
    at_[0] = a.extents[0];
    storage::index extents = a.extents;
    extents[0] += more[0];
    grown_to_ = extents;
    file_ = resize(extents);
  }

  void place(const array_part& part) {
    const storage::array_description& a = file_.meta.array;
    const storage::index& n = part.elements.extents;
    bool fits = part.at.size() == n.size();
    for (std::size_t d = 0; fits && d < n.size(); ++d)
      fits = part.at[d] <= a.extents[d] && n[d] <= a.extents[d] - part.at[d];
    if (!fits)
      throw usage_error(errc::invalid_request, it() + " has no room for " + shape_text(n) + " at " +
                                                   shape_text(part.at) + "; --at is an index in it, and all must fit");
    at_ = part.at;
  }

  storage::opened_file resize(const storage::index& extents) {
    storage::array_description as = file_.meta.array;
    set_extents(as, extents);
    return core_.resize(file_, storage::array_file_bytes(as), extents);
  }

  const located where_;
  storage::store_core& core_;
  std::shared_ptr<void> claim_;
  storage::index before_;
  storage::index grown_to_;  ///< empty: it has not grown here
  bool published_ = false;
};

}  // namespace

void array_target::write(const storage::index& lower, const storage::index& upper, std::span<std::byte> slab) {
  storage::index from = lower, to = upper;
  for (std::size_t d = 0; d < at_.size(); ++d) {
    from[d] += at_[d];
    to[d] += at_[d];
  }
  throw_if(file_.file->write(storage::box_request(file_.meta.array, from, to), slab.data()));
}

std::unique_ptr<array_target> make_array(const located& where, new_array made) {
  return std::make_unique<made_array>(where, std::move(made));
}

std::unique_ptr<array_target> part_of_array(const located& where, const array_part& part) {
  return std::make_unique<filled_array>(where, part);
}

}  // namespace ooc::tool
