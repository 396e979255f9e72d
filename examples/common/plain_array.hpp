// The rival: the same array as plain memory, paging left to the operating system.
//
// Either a mapped file (MAP_SHARED) or anonymous memory into which a file is first read.  Indexing
// reads as that of ooc_array, so one template runs on both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "common/ranks.hpp"

namespace examples {

/// Bytes of memory, unmapped at the end.  Throws std::system_error.
class plain_memory {
 public:
  /// Makes (or replaces) a file of `bytes` bytes, reserving its space, and maps it on all ranks.
  static plain_memory create(const std::filesystem::path& file, std::uint64_t bytes,
                             const ranks& all);
  /// Anonymous memory with the content of a file, one and the same on all ranks.
  static plain_memory read_from(const std::filesystem::path& file, const ranks& all);

  plain_memory(plain_memory&& o) noexcept;
  plain_memory& operator=(plain_memory&& o) noexcept;
  ~plain_memory();

  std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Waits until a mapped file has been written to its file system.
  void writeback();

 private:
  plain_memory(std::byte* data, std::uint64_t size) : data_(data), size_(size) {}
  static plain_memory read_alone(const std::filesystem::path& file);
  void fill_from(const std::filesystem::path& file);

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

template <class T, std::size_t N>
class plain_array {
 public:
  plain_array(plain_memory memory, std::array<std::size_t, N> extents, const ranks& all)
      : memory_(std::move(memory)), extents_(extents), ranks_(&all) {}

  T* data() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t extent(std::size_t i) const noexcept { return extents_[i]; }
  void writeback() { memory_.writeback(); }
  /// The ranks share the memory: they need only wait for each other.
  void sync() { ranks_->barrier(); }
  /// Rows first <= i < second.
  std::pair<std::size_t, std::size_t> local_rows() const {
    const auto r = static_cast<std::size_t>(ranks_->rank()), n = static_cast<std::size_t>(ranks_->size());
    return {extents_[0] * r / n, extents_[0] * (r + 1) / n};
  }

  decltype(auto) operator[](std::size_t i) const noexcept {
    static_assert(N == 1 || N == 2);
    if constexpr (N == 1)
      return (data()[i]);
    else
      return data() + i * extents_[1];
  }

 private:
  plain_memory memory_;
  std::array<std::size_t, N> extents_;
  const ranks* ranks_;
};

/// A folder beside the store's files for the rival's, removed with what is in it at the end.
class rival_folder {
 public:
  /// In the first folder of a "local:" store; throws bad_option for another kind of store.
  rival_folder(const std::string& store_url, const ranks& all);
  ~rival_folder();
  rival_folder(const rival_folder&) = delete;
  rival_folder& operator=(const rival_folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  const ranks& ranks_;
};

}  // namespace examples
