// Arrays larger than memory, with the loop you already have.
//
//     ooc::runtime rt{{.memory = 512_MiB}};
//     auto store = ooc::store::open("local:/scratch/demo");
//     ooc::ooc_array<double, 2> a{rt, store, "plate/a", ooc::create, {n, n}};
//     for (std::size_t i = 0; i < n; ++i)
//       for (std::size_t j = 0; j < n; ++j) a[i][j] = f(i, j);
//     a.writeback();
//
// The array template of POCCS (Tang, Fang, Hu, Zhang: "A Parallel Out-of-Core Computing System
// Using PVFS for Linux Clusters", section 3.1) on a modern processor's address translation: an
// array is a reserved range of addresses, an element access is plain address arithmetic, and a
// touch of a block that is not in memory faults and is served by the runtime.  So every reference
// stays valid for the array's life, and threads, std::sort, std::span, Eigen and existing C code
// work on it.
//
// Users should know:
//   - A block is *dirty* (modified) from the first write until the I/O nodes have *acknowledged*
//     it: from then on every process reads the new data, and they survive the end of this process
//     and of the servers.  writeback(), close() and the destructor wait for that, and a dirty block
//     is written back before it leaves memory.  After writeback(ooc::durable) the data also survive
//     a loss of power.
//   - System calls and MPI must be given pinned memory: pin().
//   - An element access that cannot be served (a node is gone, a checksum is wrong, modified blocks do
//     not fit onto a full disk and nothing else can leave memory) cannot throw: it ends the
//     process with a message and fatal_exit_status; see runtime_options::on_fatal.
//   - Signal handlers must not touch array memory.
//   - A write to an array opened read-only is a fault of the program (SIGSEGV); a const array or
//     open_read_only as const makes the compiler find it.  This and a touch of a closed array, or of
//     one within 1 GiB before or after its elements, write a line that names the array and the
//     element before the program's own handler runs or the process ends.
//   - What is modified when the runtime or the process ends: see runtime.hpp.
//
// Threads: elements as for a plain array (two threads that write one element, or write and read it,
// need an order between them).  Member functions may be called from any thread at any time, except
// resize(), close(), moves and the destructor, during which no other thread may use the array.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<mdspan>)
#include <mdspan>
#endif

#include "oocarray/access.hpp"
#include "oocarray/array_base.hpp"
#include "oocarray/array_options.hpp"
#include "oocarray/box.hpp"
#include "oocarray/element_type.hpp"
#include "oocarray/error.hpp"
#include "oocarray/indexed_array.hpp"
#include "oocarray/iterator.hpp"
#include "oocarray/layout.hpp"
#include "oocarray/pin.hpp"
#include "oocarray/runtime.hpp"
#include "oocarray/store.hpp"
#include "oocarray/tiles.hpp"
#include "oocarray/view.hpp"

namespace ooc {

/// An N-d array of T in a file of a store.  Layout: the order of elements in memory, layout_right
/// (default) or layout_tiled.  Extents and indices count elements, slowest dimension first.
/// Movable, not copyable.  An array that was moved from, or made by `ooc_array<double, 2> a;`, has no file and no
/// elements: it may be assigned to and destroyed, and is_open() and extents() say so.
///
/// The members that are the same for all arrays are in array_base.hpp: writeback(), sync(), sync_halo(), invalidate(),
/// advise(), close(), attributes and facts.  gather(), scatter() and accumulate(), which take lists of
/// indices, are in indexed_array.hpp.
template <class T, std::size_t N, class Layout = layout_right>
class ooc_array : public indexed_array<T, N> {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>,
                "ooc_array<T, N>: elements travel between memory and disk as bytes, so T must be "
                "trivially copyable, without const or volatile");
  static_assert(!detail::holds_address<T>,
                "ooc_array<T, N>: pointers, string_views and spans are addresses in this process, which mean "
                "nothing in a file; keep indices, or std::array<char, n> for text");
  static_assert(N >= 1 && N <= 8, "ooc_array<T, N>: N must be 1 to 8");
  static_assert(std::is_same_v<Layout, layout_right> || std::is_same_v<Layout, layout_tiled>,
                "ooc_array<T, N, Layout>: Layout must be ooc::layout_right or ooc::layout_tiled");
  static_assert(alignof(T) <= 4096, "ooc_array<T, N>: T may be aligned to at most 4096 bytes");

 public:
  using value_type = T;
  using element_type = T;
  using layout_type = Layout;
  using index_type = ooc::coordinates<N>;
  using extents_type = std::array<std::size_t, N>;
  using options_type = array_options<T>;
  using box_type = ooc::box<N>;
  using iterator = std::conditional_t<Layout::contiguous, T*, tiled_iterator<T, N>>;
  using const_iterator = std::conditional_t<Layout::contiguous, const T*, tiled_iterator<const T, N>>;
  using indexed_array<T, N>::core;

  // --- Making and opening

  /// Without a file; to be assigned to: `a = ooc::ooc_array<double, 2>(rt, store, "a", ooc::open);`
  ooc_array() noexcept = default;

  /// Makes a file at `path`, and the folders above it that do not exist.  Its elements are
  /// options.fill.  Throws usage_error: EEXIST where the path exists (unless options.replace);
  /// invalid_request for extents of 0 but the first (an array may begin without rows), sizes beyond
  /// 2^63 - 1 bytes, a block that is not a multiple of 4 KiB, a tile that is not a power of two
  /// (layout_tiled); budget_too_small where the runtime's memory cannot hold a few blocks; and
  /// io_error, for example ENOSPC.  A failure leaves no file behind.
  ooc_array(runtime& rt, const store& s, std::string_view path, create_t, const extents_type& extents,
            const options_type& options = {})
      : ooc_array(rt, s, path, how::create, &extents, options) {}

  /// Opens the file at `path` for reading and writing, or makes it where there is none, so that a
  /// program can be run again.  Throws what making and opening throw: type_mismatch, with what differs,
  /// where the file holds other elements, another rank or other extents.  Options that are recorded with
  /// a file (fill among them) count where it is made.
  ooc_array(runtime& rt, const store& s, std::string_view path, create_or_open_t, const extents_type& extents,
            const options_type& options = {})
      : ooc_array(rt, s, path, how::create_or_open, &extents, options) {}

  /// Opens a file for reading and writing; its extents are those recorded.  Throws usage_error:
  /// type_mismatch where it holds another element type or rank; busy where it is open in this
  /// process already; ENOENT, EACCES, EISDIR.
  ooc_array(runtime& rt, const store& s, std::string_view path, open_t, const options_type& options = {})
      : ooc_array(rt, s, path, how::open, nullptr, options) {}
  /// The same, and the recorded extents must be these.  A file without a recorded element type
  /// opens as any T and any extents that its size can hold.
  ooc_array(runtime& rt, const store& s, std::string_view path, open_t, const extents_type& extents,
            const options_type& options = {})
      : ooc_array(rt, s, path, how::open, &extents, options) {}

  /// Opens a file for reading only.  Make the array const: a write through a non-const one
  /// compiles, but faults.
  ooc_array(runtime& rt, const store& s, std::string_view path, open_read_only_t, const options_type& options = {})
      : ooc_array(rt, s, path, how::open_read_only, nullptr, options) {}
  ooc_array(runtime& rt, const store& s, std::string_view path, open_read_only_t, const extents_type& extents,
            const options_type& options = {})
      : ooc_array(rt, s, path, how::open_read_only, &extents, options) {}

  ooc_array(ooc_array&& o) noexcept
      : indexed_array<T, N>(std::move(o)),
        base_(std::exchange(o.base_, nullptr)),
        map_(o.map_),
        extents_(std::exchange(o.extents_, {})) {}
  ooc_array& operator=(ooc_array&& o) noexcept {
    if (this != &o) {
      indexed_array<T, N>::operator=(std::move(o));
      base_ = std::exchange(o.base_, nullptr);
      map_ = o.map_;
      extents_ = std::exchange(o.extents_, {});
    }
    return *this;
  }
  /// Writes back (acknowledged, not durable).  Never throws: what could not be written is lost and
  /// reported on stderr; call writeback() or close() before, to know.
  ~ooc_array() = default;

  // --- Elements: no checks but assert() of each index; a reference stays valid until the array is
  // closed or destroyed.  Without the asserts an index out of range may find another element; a touch
  // past the last page that holds elements is a fault (layout_tiled: past the last tile), so up to
  // 4095 bytes after the last element are not found.

  /// N == 1: the element; else a view of row i, to be indexed further: a[i][j], or assigned: a[i] = b[k]
  /// copies a row (view.hpp).
  decltype(auto) operator[](std::size_t i) noexcept { return rows<T>()[i]; }
  decltype(auto) operator[](std::size_t i) const noexcept { return rows<const T>()[i]; }

  /// a(i, j): the same element.
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N) T& operator()(I... i) noexcept {
    return *place<T>(std::make_index_sequence<N>{}, static_cast<std::size_t>(i)...);
  }
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N) const T& operator()(I... i) const noexcept {
    return *place<const T>(std::make_index_sequence<N>{}, static_cast<std::size_t>(i)...);
  }

#ifdef __cpp_multidimensional_subscript
  /// a[i, j], from C++23 on.
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N && N > 1) T& operator[](I... i) noexcept { return (*this)(i...); }
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N && N > 1) const T& operator[](I... i) const noexcept { return (*this)(i...); }
#endif

  /// a.at(i, j): checked; throws std::out_of_range naming array, dimension, index and extent.
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N) T& at(I... i) { return checked<T>(index_type{static_cast<std::size_t>(i)...}); }
  template <std::convertible_to<std::size_t>... I>
  requires(sizeof...(I) == N) const T& at(I... i) const {
    return checked<const T>(index_type{static_cast<std::size_t>(i)...});
  }

  /// An element by its coordinates.
  T& element(const index_type& c) noexcept { return *place<T>(c); }
  const T& element(const index_type& c) const noexcept { return *place<const T>(c); }

  /// The row-major image; size() elements.
  T* data() noexcept requires(Layout::contiguous) { return base_; }
  const T* data() const noexcept requires(Layout::contiguous) { return base_; }
  /// As a span.  It is const, so that `a.span() = b.span()`, which would copy nothing, does not compile.
  const std::span<T> span() noexcept requires(Layout::contiguous) { return {base_, size()}; }
  const std::span<const T> span() const noexcept requires(Layout::contiguous) { return {base_, size()}; }
#ifdef __cpp_lib_mdspan
  auto mdspan() noexcept requires(Layout::contiguous) {
    return std::mdspan<T, std::dextents<std::size_t, N>>(base_, extents_);
  }
  auto mdspan() const noexcept requires(Layout::contiguous) {
    return std::mdspan<const T, std::dextents<std::size_t, N>>(base_, extents_);
  }
#endif

  /// Row-major order of elements.
  iterator begin() noexcept { return iterator_at<iterator, T>(0); }
  iterator end() noexcept { return iterator_at<iterator, T>(size()); }
  const_iterator begin() const noexcept { return iterator_at<const_iterator, const T>(0); }
  const_iterator end() const noexcept { return iterator_at<const_iterator, const T>(size()); }
  const_iterator cbegin() const noexcept { return begin(); }
  const_iterator cend() const noexcept { return end(); }

  /// The array tile by tile, in storage order; see tiles.hpp.  Up to `ahead` tiles are fetched
  /// before their turn, except those under an overwrite() promise.  Throws usage_error for writing
  /// where the array is read-only.
  tile_range<ooc_array, T, N> tiles(access_mode mode, std::size_t ahead = 2) {
    core().check_open();
    if (mode == access_mode::write) core().check_writable("have its tiles written");
    return {*this, tile_shape(), ahead};
  }
  tile_range<const ooc_array, const T, N> tiles(std::size_t ahead = 2) const {
    core().check_open();
    return {*this, tile_shape(), ahead};
  }

  /// A box of elements as a strided piece of memory, for code that takes a pointer, extents and strides:
  /// eigen_map(a.slice(b)), or an mdspan with std::layout_stride; a.slice(b) = c.slice(d) copies.  It owns nothing and
  /// is valid as references are.  Throws usage_error: errc::closed, and (errc::invalid_request) for a box that does not
  /// lie within the extents.
  tile<T, N> slice(const box_type& b) requires(Layout::contiguous) { return slice_of<T>(b); }
  tile<const T, N> slice(const box_type& b) const requires(Layout::contiguous) { return slice_of<const T>(b); }

  // --- Shape

  /// Number of elements.
  std::size_t size() const noexcept {
    std::size_t n = 1;
    for (std::size_t e : extents_) n *= e;
    return n;
  }
  const extents_type& extents() const noexcept { return extents_; }
  std::size_t extent(std::size_t k) const noexcept { return extents_[k]; }
  static constexpr std::size_t rank() noexcept { return N; }
  /// All elements.
  box_type whole() const noexcept { return {{}, extents_}; }

  /// Changes the extents, each from 1 up to max_extents(): the first one of any array, others where the file is in
  /// tiled order, options.max_extents was given at creation, and the layout is layout_tiled (in a row-major image
  /// other elements would move).  Collective over options.group.  What is cut off is lost.  What is new has the fill
  /// value, even if the array had been larger before.  References to elements that stay remain valid; views and
  /// iterators have the extents that they had.  Nothing is moved; what is new costs a write only where it lies in a
  /// tile that the array had, in part or before it shrank.  The call begins with a sync(), and
  /// afterwards the parts of the ranks are computed anew.  Throws the same on all ranks: what
  /// sync() throws, usage_error (invalid_request), with the limit or the remedy, for extents that cannot be, and
  /// (busy) while a region is pinned, io_error (ENOSPC).  The extents are then as they were, but elements that were
  /// to be cut off may already have the fill value.  As a write, the change is acknowledged on return, and durable
  /// after writeback(ooc::durable) or sync(ooc::durable).
  void resize(const extents_type& extents) {
    core().ranks().resize(extents, false);
    take_shape();
  }
  /// The same; the other extents stay.
  void resize(std::size_t first_extent) {
    core().ranks().resize_first(first_extent);
    take_shape();
  }

  /// Elements, extents and attributes of an array with commits become those of the last one (ooc::commit).  Modified
  /// blocks are lost, as is what was written back since.  Collective over options.group.  Throws usage_error
  /// (errc::invalid_request) where the array was made without options.commits or is read-only, (busy) while a region is
  /// pinned, and io_error.
  void roll_back() {
    core().ranks().roll_back();
    take_shape();
  }

  // --- The ranks of options.group; without one, a single rank that has everything.  See sync() too.

  /// The part of this rank: whole rows (indices of the first dimension), about as many on every
  /// rank.  A part ends where a block ends, if the parts are then even to a quarter.  Where the
  /// stripes of the file are whole rows and as even, each rank has one stripe (options.placement).
  /// The parts of all ranks are disjoint and together make up the array; a part may be empty.  They
  /// depend on shape, block, stripes and number of ranks alone: arrays that agree in these have the
  /// same parts.
  box_type local_box() const { return part(core().ranks().rank()); }
  /// The part of any rank.
  box_type part(int rank) const {
    box_type b = whole();
    std::tie(b.lower[0], b.upper[0]) = core().ranks().rows_of(rank);
    return b;
  }

  // --- Memory and the store

  /// Transfers of all ranks at once.  Collective over options.group.  Each rank reads a box of its
  /// own to its memory (read_all), or writes it from its memory (write_all); the box may be empty.
  /// The memory is ordinary or pinned and has b.size() elements in row-major order.  The calls are
  /// for boxes of the ranks that interleave in the file: columns, cyclic rows, sub-cubes.  For such
  /// boxes each rank transfers long contiguous parts of the file and passes on what belongs to
  /// others.  Other boxes go straight to the nodes.
  ///
  /// read_all() reads what every rank has written to the boxes before its own call, written back or
  /// not.  The boxes may overlap.  Blocks in memory stay as they are, so element accesses see the
  /// writes of other ranks only after sync().
  ///
  /// After write_all() every rank sees everything that was written, in element accesses too: all
  /// ranks write back the blocks that any of the boxes touches, and drop them.  The data are
  /// acknowledged, not durable.
  ///
  /// Both calls end the promises of overwrite(), on all ranks, for the blocks that any of the boxes
  /// touches; later writes to these blocks are added to what the store then holds.  With
  /// owner_computes the boxes may lie anywhere.  options.checking does not look at them.
  ///
  /// Throws the same on all ranks.  Before anything is transferred: usage_error if a box does not
  /// fit into the array or into the memory (errc::invalid_request), if boxes that are written
  /// overlap (errc::conflict, names ranks and box), if a region is pinned during write_all
  /// (errc::busy), or if the budget has no room for the exchange (errc::budget_too_small; it takes
  /// an eighth of the budget, at most 32 MiB).  And what sync() throws.  After a failed write_all
  /// each element of the boxes is old or new.  No other thread may use the array meanwhile.
  /// Without a group the calls concern this process alone.
  void read_all(const box_type& b, std::span<T> destination) const {
    core().ranks().read_all({b.lower, b.upper}, reinterpret_cast<std::byte*>(destination.data()), destination.size());
  }
  void write_all(const box_type& b, std::span<const T> source) {
    core().ranks().write_all({b.lower, b.upper}, reinterpret_cast<const std::byte*>(source.data()), source.size());
  }

  /// Starts reading a box; returns at once.  Blocks that find no room in memory are left out.
  void prefetch(const box_type& b) const { core().prefetch({b.lower, b.upper}); }
  /// The same for several boxes, those of the first box first; a block that two boxes touch is read
  /// once.
  void prefetch(std::span<const box_type> boxes) const {
    std::vector<detail::box_view> all;
    all.reserve(boxes.size());
    for (const box_type& b : boxes) all.push_back({b.lower, b.upper});
    core().prefetch(all);
  }

  /// Promises that the program writes every element of the box before it reads any of them.  Blocks
  /// within the box then need not be loaded, and of blocks at its border only what lies outside the
  /// box.
  ///
  /// The promise concerns blocks that are not in memory now.  For each block it holds until the
  /// first touch: if that is a write, the library loads what lies outside the box; if it is a read,
  /// it loads everything.  A write pin is such a touch too, and so is read_all() or write_all() of
  /// any rank for each block that one of the boxes touches.  Element writes, write pins and
  /// write_all() together keep the promise; writes that go past the array, as through ooc::file, do
  /// not count.  Where boxes of several calls meet in one block, the latest call counts.  The
  /// latest 64 calls are remembered.
  ///
  /// If the program does not keep the promise: in a block that was written to, elements of the box
  /// that were not written read as zeros, whatever options.fill is, and are stored as zeros with
  /// the block.  In other blocks they are as they were.  For an element that lies across two blocks
  /// this holds for each of its parts.  read_all() shows the same.
  ///
  /// Throws io_error if modified parts of one of the blocks cannot be written; then all promises of the
  /// array are taken back.
  void overwrite(const box_type& b) { core().overwrite({b.lower, b.upper}); }

  /// Keeps a box in memory and mapped, for system calls and MPI; see pin.hpp.  Throws usage_error
  /// (budget_too_small) if the box and the other pins would leave less of the budget, or of the
  /// array's `buffers`, than a copy of one element needs (runtime_options::memory); a block that
  /// other processes may write to counts twice.  Throws io_error if a block cannot be read.
  pin_guard<T> pin(const box_type& b, access_mode mode = access_mode::write) {
    return {core(), core().pin({b.lower, b.upper}, mode)};
  }
  pin_guard<const T> pin(const box_type& b) const {
    return {core(), core().pin({b.lower, b.upper}, access_mode::read)};
  }

  /// Shape of a tile in memory (layout_tiled).
  extents_type tile_extents() const requires(!Layout::contiguous) { return tile_shape(); }

 private:
  using how = detail::array_request::how;
  using map_type = std::array<typename Layout::dimension, N>;
  friend class tile_range<ooc_array, T, N>;
  friend class tile_range<const ooc_array, const T, N>;

  ooc_array(runtime& rt, const store& s, std::string_view path, how action, const extents_type* extents,
            const options_type& options)
      : indexed_array<T, N>(rt, s, path, request_for(action, extents, options)) {
    take_shape();
  }

  static detail::array_request request_for(how action, const extents_type* extents, const options_type& o) {
    detail::array_request r;
    r.action = action;
    r.layout = Layout::contiguous ? detail::memory_layout::right : detail::memory_layout::tiled;
    r.element_type = ooc::element_type<T>::name();
    r.element_size = sizeof(T);
    r.rank = N;
    if (extents) r.extents.assign(extents->begin(), extents->end());
    if (o.fill) {
      T fill = *o.fill;
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
      __builtin_clear_padding(&fill);  // may be different on each rank
#endif
#endif
      r.fill.resize(sizeof(T));
      std::memcpy(r.fill.data(), &fill, sizeof(T));
    }
    r.options = without_fill<std::byte>(o);
    return r;
  }

  void take_shape() {
    const detail::array_facts& f = core().facts();
    base_ = reinterpret_cast<T*>(f.base);
    std::copy_n(f.extents.begin(), N, extents_.begin());
    map_ = Layout::template map<N>(extents_, f.max_extents, f.tile, sizeof(T), f.block_bytes);
  }

  template <class U>
  view<U, N, Layout> rows() const noexcept {
    return {base_, map_, extents_};
  }
  template <class U, std::size_t... K, class... I>
  U* place(std::index_sequence<K...>, I... i) const noexcept {
    assert(((i < extents_[K]) && ...) && "index out of range");
    U* p = base_;
    ((p = map_[K].template advance<K == N - 1>(p, i)), ...);
    return p;
  }
  template <class U>
  U* place(const index_type& c) const noexcept {
    return [&]<std::size_t... K>(std::index_sequence<K...> all) { return this->place<U>(all, c[K]...); }
    (std::make_index_sequence<N>{});
  }
  template <class U>
  U& checked(const index_type& c) const {
    for (std::size_t k = 0; k < N; ++k)
      if (c[k] >= extents_[k]) core().out_of_range(k, c[k]);
    core().check_open();
    U* const p = place<U>(c);
    core().note_at(reinterpret_cast<const std::byte*>(p), sizeof(T));
    return *p;
  }
  template <class Iterator, class U>
  Iterator iterator_at(std::size_t position) const noexcept {
    if constexpr (Layout::contiguous)
      return static_cast<U*>(base_) + position;
    else
      return {base_, map_, extents_, position};
  }

  extents_type tile_shape() const {
    extents_type shape{};
    std::ranges::copy(core().tile_shape(), shape.begin());
    return shape;
  }
  template <class U>
  tile<U, N> slice_of(const box_type& b) const {
    core().check_open();
    const index_type strides = tile_strides();
    U* p = base_;
    for (std::size_t k = 0; k < N; ++k) {
      if (b.lower[k] > b.upper[k] || b.upper[k] > extents_[k])
        throw usage_error(errc::invalid_request, "slice() of array '" + this->path() + "': in dimension " +
                                                     std::to_string(k) + " the box is from " +
                                                     std::to_string(b.lower[k]) + " to " + std::to_string(b.upper[k]) +
                                                     ", and the extent is " + std::to_string(extents_[k]));
      p += b.lower[k] * strides[k];
    }
    return {p, b, strides};
  }
  /// Elements between neighbours within a tile.
  index_type tile_strides() const {
    const extents_type across = Layout::contiguous ? extents_ : tile_shape();
    index_type s{};
    s[N - 1] = 1;
    for (std::size_t k = N - 1; k-- > 0;) s[k] = s[k + 1] * across[k + 1];
    return s;
  }

  T* base_ = nullptr;
  map_type map_{};
  extents_type extents_{};
};

}  // namespace ooc
