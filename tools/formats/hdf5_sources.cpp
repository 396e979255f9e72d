#include "formats/hdf5_sources.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/entry_text.hpp"
#include "formats/hdf5_opening.hpp"
#include "formats/hdf5_slabs.hpp"
#include "formats/source_places.hpp"
#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::tool::hdf5 {

namespace {

constexpr int deepest = 16;  // of virtual datasets of virtual datasets

/// Collects what is lost within a box.
class collector {
 public:
  collector(extents n, const extents& lower, const extents& upper)
      : extents_(std::move(n)), wanted_(box_of(lower, upper)) {}

  /// Whether any of these elements is wanted.
  bool wants(const slabs& which) const {
    const handle space = space_of(extents_);
    H5Sselect_none(space);
    add_to(space, which);
    return points(space) > 0;
  }
  /// They are lost, for this reason.
  void add(const slabs& which, std::string reason) {
    if (!wants(which)) return;
    if (std::find(all_.reasons.begin(), all_.reasons.end(), reason) == all_.reasons.end())
      all_.reasons.push_back(std::move(reason));
    if (!all_.selection) {
      all_.selection = space_of(extents_);
      H5Sselect_none(all_.selection);
    }
    add_to(all_.selection, which);
    all_.count = points(all_.selection);
  }
  const extents& of() const { return extents_; }
  lost_elements take() { return std::move(all_); }

 private:
  void add_to(hid_t space, const slabs& which) const {
    for (const slab& s : which) select(space, H5S_SELECT_OR, s);
    select(space, H5S_SELECT_AND, wanted_);
  }

  extents extents_;
  slab wanted_;
  lost_elements all_;
};

// --- raw files

void look_at_raw_files(hid_t dataset, hid_t creation, collector& lost) {
  const handle type(H5Dget_type(dataset), H5Tclose);
  const std::uint64_t element = H5Tget_size(type);
  std::uint64_t total = element, at = 0;
  for (const std::uint64_t k : lost.of()) total *= k;
  const int files = H5Pget_external_count(creation);
  for (int i = 0; i < files && at < total; ++i) {
    std::array<char, 4096> name{};
    off_t offset = 0;
    hsize_t size = 0;
    H5Pget_external(creation, static_cast<unsigned>(i), name.size() - 1, name.data(), &offset, &size);
    const std::string path = place_of_raw_file(dataset, name.data());
    const std::uint64_t here = std::min<std::uint64_t>(size, total - at);
    const storage::file_descriptor f(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct ::stat s {};
    const int error = !f || ::fstat(f.get(), &s) != 0 ? errno
                      : S_ISREG(s.st_mode)            ? 0
                      : S_ISDIR(s.st_mode)            ? EISDIR
                                                      : EINVAL;
    const auto has = static_cast<std::uint64_t>(error == 0 ? std::max<off_t>(0, s.st_size - offset) : 0);
    if (has < here)
      lost.add(range(lost.of(), (at + has) / element, (at + here + element - 1) / element),
               "the raw file '" + path + "' " +
                   (error != 0 ? std::string("cannot be read (") + std::strerror(error) + ")"
                               : "has " + std::to_string(s.st_size) + " bytes of the " +
                                     std::to_string(static_cast<std::uint64_t>(offset) + here) + " that it needs"));
    at += here;
  }
}

// --- virtual datasets

lost_elements find_lost_to(hid_t dataset, const extents& lower, const extents& upper, int depth);

struct source_state {
  std::string lost;  ///< why it gives nothing; empty: it is there
  extents has;
};

template <class Get>
std::string text_of(Get get, hid_t creation, std::size_t i) {
  std::string text(static_cast<std::size_t>(std::max<ssize_t>(0, get(creation, i, nullptr, 0))), '\0');
  get(creation, i, text.data(), text.size() + 1);
  return text;
}

std::string source_text(const std::string& file, const std::string& name) {
  return "the dataset '" + name + "' of the file '" + file + "' ";
}

class virtual_sources {
 public:
  virtual_sources(hid_t dataset, hid_t creation, collector& lost, int depth)
      : dataset_(dataset), creation_(creation), lost_(lost), depth_(depth) {}

  void look() {
    std::size_t n = 0;
    H5Pget_virtual_count(creation_, &n);
    for (std::size_t i = 0; i < n; ++i) look_at(i);
  }

 private:
  void look_at(std::size_t i) {
    const handle to(H5Pget_virtual_vspace(creation_, i), H5Sclose),
        from(H5Pget_virtual_srcspace(creation_, i), H5Sclose);
    const auto target = slab_of(to), source = slab_of(from);
    const std::string file = text_of(H5Pget_virtual_filename, creation_, i),
                      name = text_of(H5Pget_virtual_dsetname, creation_, i);
    if (!target)
      check(blocks_of(to), file, name, from, source, {});
    else if (source && target->endless >= 0 && source->endless < 0)
      look_at_numbered(*target, file, name, from, source);
    else
      check(inside(*target, lost_.of()), numbered(file, 0), numbered(name, 0), from, source, target);
  }

  /// Each block of the array is a source of its own.
  void look_at_numbered(const slab& target, const std::string& file, const std::string& name, hid_t from,
                        const std::optional<slab>& source) {
    const auto d = static_cast<std::size_t>(target.endless);
    for (std::uint64_t k = 0; target.start[d] + k * target.stride[d] < lost_.of()[d]; ++k) {
      slab one = target;
      one.start[d] += k * target.stride[d];
      one.count[d] = 1;
      one.endless = -1;
      check({one}, numbered(file, k), numbered(name, k), from, source, {});
    }
  }

  void check(const slabs& which, const std::string& file, const std::string& name, hid_t from,
             const std::optional<slab>& source, const std::optional<slab>& target) {
    if (!lost_.wants(which)) return;
    const auto [known, fresh] = states_.try_emplace({file, name});
    source_state& s = known->second;
    if (fresh) s = state_of(file, name);
    const std::string what = source_text(file, name);
    if (!s.lost.empty()) return lost_.add(which, what + s.lost);
    if (const std::string why = too_small(s.has, which, from, source); !why.empty())
      return lost_.add(which, what + why);
    if (!source || source->endless < 0 || !target || target->endless < 0) return;
    // Both go on: what the source has not got yet, although another one has let the array grow beyond.
    const hsize_t rows = rows_within(*source, s.has[static_cast<std::size_t>(source->endless)]);
    lost_.add(inside(*target, lost_.of(), rows), what + "is " + shape_text(s.has) + " large, and the array goes on");
  }

  /// Why a source does not have what is taken from it; of one that goes on, whatever there is in that dimension.
  static std::string too_small(const extents& has, const slabs& which, hid_t from, const std::optional<slab>& source) {
    if (source && source->whole) {  // of which no extents are noted
      std::uint64_t taken = 0, there = 1;
      for (const slab& s : which) taken += elements_of(s);
      for (const std::uint64_t k : has) there *= k;
      if (taken == there) return {};
      return "is " + shape_text(has) + " large, and " + std::to_string(taken) +
             " elements are what the array takes from it";
    }
    const auto rank = static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(from)));
    extents needed(rank, 0);
    if (source) {
      for (std::size_t d = 0; d < rank; ++d)
        if (static_cast<int>(d) != source->endless)
          needed[d] = source->start[d] + (source->count[d] - 1) * source->stride[d] + source->block[d];
    } else {
      counts low(rank), high(rank);
      H5Sget_select_bounds(from, low.data(), high.data());
      for (std::size_t d = 0; d < rank; ++d) needed[d] = high[d] + 1;
    }
    if (std::equal(has.begin(), has.end(), needed.begin(), needed.end(), std::greater_equal<>())) return {};
    return "is " + shape_text(has) + " large, and " + shape_text(needed) + " is what the array takes from it";
  }

  source_state state_of(const std::string& file, const std::string& name) {
    const auto none = [&](const std::string& why) { return source_state{why, {}}; };
    if (depth_ == deepest) return none("is virtual itself, " + std::to_string(deepest) + " times over");
    handle opened;
    if (file != ".") {
      std::string why;
      opened = open_source_file(dataset_, file, why);
      if (!opened) return none("cannot be read: " + why);
    }
    const handle same(file == "." ? H5Iget_file_id(dataset_) : -1, H5Fclose);
    const handle access = access_to_sources();
    const handle d(H5Dopen2(file == "." ? static_cast<hid_t>(same) : static_cast<hid_t>(opened), name.c_str(), access),
                   H5Dclose);
    if (!d) return none("is not there: " + last_error());
    source_state s{"", extents_of_dataset(d)};
    if (std::find(s.has.begin(), s.has.end(), 0u) != s.has.end() || s.has.empty()) return s;
    const auto deeper = find_lost_to(d, extents(s.has.size(), 0), s.has, depth_ + 1);
    if (!deeper.reasons.empty()) s.lost = "lacks elements itself: " + deeper.reasons[0];
    return s;
  }

  hid_t dataset_, creation_;
  collector& lost_;
  int depth_;
  std::map<std::pair<std::string, std::string>, source_state> states_;
};

lost_elements find_lost_to(hid_t dataset, const extents& lower, const extents& upper, int depth) {
  const handle creation(H5Dget_create_plist(dataset), H5Pclose);
  collector lost(extents_of_dataset(dataset), lower, upper);
  if (H5Pget_layout(creation) == H5D_VIRTUAL) virtual_sources(dataset, creation, lost, depth).look();
  if (H5Pget_external_count(creation) > 0) look_at_raw_files(dataset, creation, lost);
  return lost.take();
}

}  // namespace

handle access_to_sources() {
  handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_virtual_printf_gap(access, printf_gap);
  return access;
}

extents extents_of_dataset(hid_t dataset) {
  const handle space(H5Dget_space(dataset), H5Sclose);
  const H5S_class_t kind = space ? H5Sget_simple_extent_type(space) : H5S_NO_CLASS;
  if (kind == H5S_NULL || kind == H5S_NO_CLASS) return {};
  std::array<hsize_t, H5S_MAX_RANK> n{};
  const int rank = H5Sget_simple_extent_dims(space, n.data(), nullptr);
  if (rank == 0) return {1};
  return {n.begin(), n.begin() + rank};
}

std::string first_source(hid_t creation) {
  std::size_t n = 0;
  if (H5Pget_layout(creation) != H5D_VIRTUAL || H5Pget_virtual_count(creation, &n) < 0 || n == 0) return {};
  return source_text(text_of(H5Pget_virtual_filename, creation, 0), text_of(H5Pget_virtual_dsetname, creation, 0));
}

lost_elements find_lost(hid_t dataset, const extents& lower, const extents& upper) {
  be_quiet();
  return find_lost_to(dataset, lower, upper, 0);
}

slabs blocks_without(const lost_elements& lost, const extents& lower, const extents& upper) {
  const handle rest(H5Scopy(lost.selection), H5Sclose);
  select(rest, H5S_SELECT_SET, box_of(lower, upper));
  for (const slab& s : blocks_of(lost.selection)) select(rest, H5S_SELECT_NOTB, s);
  return blocks_of(rest);
}

}  // namespace ooc::tool::hdf5
