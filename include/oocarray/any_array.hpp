// An array whose element type and rank are known at run time: what bindings of other languages, and
// programs that open whatever a store holds, use in place of ooc_array<T, N>.
//
//     ooc::any_array a{rt, store, "plate/a", ooc::open_read_only};
//     if (a.element_type() == "f8") sum(reinterpret_cast<const double*>(a.data()), a.size());
//
// It is the same array: the same file opens as ooc_array<double, 2>, and everything that
// ooc_array.hpp says of memory, errors, threads and durability holds here.  Elements are bytes:
// data() is their row-major image (memory_layout::right), or they lie tile by tile
// (memory_layout::tiled), each tile a strided box.
//
// Owner: whoever made it; movable.  Addresses stay valid until close() or the end of the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/access.hpp"
#include "oocarray/array_base.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/pin.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"

namespace ooc {

/// The format of elements: the name of their type, as in element_type.hpp, and the bytes of each.
struct element_format {
  std::string name;
  std::uint32_t size = 0;
};

/// Elements lower[k] <= c[k] < upper[k], as box<N>; both have as many numbers as the array
/// dimensions.
struct any_box {
  std::vector<std::size_t> lower;
  std::vector<std::size_t> upper;
};

class any_array : public array_base {
 public:
  /// `fill` is the bytes of one element.
  using options_type = array_options<std::vector<std::byte>>;
  using memory_layout = detail::memory_layout;

  /// A tile: a box, and where it lies.
  struct tile {
    any_box box;
    std::byte* data = nullptr;         ///< the element with the lowest coordinates
    std::vector<std::size_t> strides;  ///< bytes between neighbours in each dimension
  };

  /// As the constructors of ooc_array.  Throws usage_error (errc::invalid_request) for 0 or more
  /// than 8 extents, an element of 0 bytes or more than 64 KiB, and a fill that is not one element.
  any_array(runtime& rt, const store& s, std::string_view path, create_t, const element_format& type,
            std::span<const std::size_t> extents, const options_type& options = {},
            memory_layout layout = memory_layout::right);
  any_array(runtime& rt, const store& s, std::string_view path, create_or_open_t, const element_format& type,
            std::span<const std::size_t> extents, const options_type& options = {},
            memory_layout layout = memory_layout::right);
  /// Element type and extents are those recorded.  Throws type_mismatch for a file without them.
  any_array(runtime& rt, const store& s, std::string_view path, open_t, const options_type& options = {},
            memory_layout layout = memory_layout::right);
  any_array(runtime& rt, const store& s, std::string_view path, open_read_only_t, const options_type& options = {},
            memory_layout layout = memory_layout::right);
  /// Without a file, as after a move; to be assigned to.
  any_array() noexcept = default;
  any_array(any_array&&) noexcept = default;
  any_array& operator=(any_array&&) noexcept = default;
  /// Writes back as the destructor of ooc_array does.
  ~any_array() = default;

  // --- Elements and shape

  const std::string& element_type() const { return facts().element_type; }
  std::size_t element_size() const { return facts().element_size; }
  std::size_t rank() const { return facts().extents.size(); }
  std::vector<std::size_t> extents() const { return {facts().extents.begin(), facts().extents.end()}; }
  std::size_t size() const;  ///< elements
  std::size_t bytes() const { return size() * element_size(); }
  any_box whole() const { return {std::vector<std::size_t>(rank()), extents()}; }
  memory_layout layout() const noexcept { return layout_; }

  /// The row-major image.  Throws usage_error: errc::closed, and (errc::invalid_request) where
  /// elements lie in tiles.
  std::byte* data() const;
  /// Bytes between neighbours in each dimension of data().
  std::vector<std::size_t> strides() const;

  /// Tiles as ooc_array::tiles() has them: blocks with memory_layout::tiled, else bands of rows of
  /// about a block.  Number k is at most tiles() - 1; in row-major order.
  std::size_t tiles() const;
  tile tile_at(std::size_t k) const;
  std::vector<std::size_t> tile_shape() const {
    core().check_open();
    return core().tile_shape();
  }
  /// Starts reading a tile, but for what an overwrite() promises; returns at once.  One past the
  /// last: nothing.
  void prefetch_tile(std::size_t k) const;

  // --- Memory and the store; as in ooc_array

  void prefetch(const any_box& b) const { core().prefetch({b.lower, b.upper}); }
  void overwrite(const any_box& b) { core().overwrite({b.lower, b.upper}); }
  pin_guard<std::byte> pin(const any_box& b, access_mode mode) {
    return {core(), core().pin({b.lower, b.upper}, mode)};
  }
  /// As in ooc_array.  With memory_layout::right too other extents than the first can change where the file allows
  /// it, but then elements move in memory: data() and strides() are to be asked for anew.
  void resize(std::span<const std::size_t> extents) { core().ranks().resize(extents, true); }
  /// As in ooc_array; of extents, memory and views as resize().
  void roll_back() { core().ranks().roll_back(); }

 private:
  any_array(runtime& rt, const store& s, std::string_view path, detail::array_request r, const options_type& options,
            memory_layout layout);

  const detail::array_facts& facts() const { return core().facts(); }

  memory_layout layout_ = memory_layout::right;
};

}  // namespace ooc
