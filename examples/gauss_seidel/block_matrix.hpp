// A matrix of n x n blocks, out of core or in plain memory, with one face for the solver.
//
//     a.block(j, i)         block column j, block row i, to read: the block layer's order, dimension
//                           1 (along a row) first
//     a.block_to_write(...) the same to write
//
// What block() returns keeps the block in memory while it lives, and * it is an Eigen map.
#pragma once

#include <cstddef>
#include <utility>

#include "gauss_seidel/system.hpp"
#include "oocarray/block_file.hpp"

namespace gauss_seidel {

template <class Map, class Guard>
class held_block {
 public:
  held_block(Guard guard, Map map) : guard_(std::move(guard)), map_(map) {}
  Map& operator*() noexcept { return map_; }

 private:
  Guard guard_;
  Map map_;
};

/// Through the block layer.
class ooc_matrix {
 public:
  explicit ooc_matrix(ooc::block_file file) : file_(std::move(file)) {}

  auto block(std::uint64_t j, std::uint64_t i) {
    return view<const_block_map>(file_.pin({j, i}, ooc::access_mode::read));
  }
  auto block_to_write(std::uint64_t j, std::uint64_t i) { return view<block_map>(file_.overwrite({j, i})); }
  void writeback() { file_.writeback(); }

 private:
  template <class Map>
  static held_block<Map, ooc::block_guard> view(ooc::block_guard g) {
    const Map map(g.as<complex>(), static_cast<Eigen::Index>(g.extent(1)), static_cast<Eigen::Index>(g.extent(0)),
                  Eigen::OuterStride<>(static_cast<Eigen::Index>(g.stride(1) / sizeof(complex))));
    return {std::move(g), map};
  }

  ooc::block_file file_;
};

/// Over memory that is there already: rows of `columns` elements, in blocks of rows x width.
class plain_matrix {
 public:
  plain_matrix(complex* data, std::uint64_t columns, std::uint64_t width, std::uint64_t rows)
      : data_(data), columns_(columns), width_(width), rows_(rows) {}

  auto block(std::uint64_t j, std::uint64_t i) { return view<const_block_map>(j, i); }
  auto block_to_write(std::uint64_t j, std::uint64_t i) { return view<block_map>(j, i); }
  void writeback() {}

 private:
  struct nothing {};
  template <class Map>
  held_block<Map, nothing> view(std::uint64_t j, std::uint64_t i) {
    return {nothing{},
            Map(data_ + i * rows_ * columns_ + j * width_, static_cast<Eigen::Index>(rows_),
                static_cast<Eigen::Index>(width_), Eigen::OuterStride<>(static_cast<Eigen::Index>(columns_)))};
  }

  complex* data_;
  std::uint64_t columns_, width_, rows_;
};

}  // namespace gauss_seidel
