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
#include <vector>

#include "harness/command_line.hpp"
#include "harness/ranks.hpp"

namespace examples {

/// Bytes first <= i < last.
struct byte_range {
  std::uint64_t first, last;
};

/// Bytes of memory, unmapped at the end.  Throws std::system_error.
class plain_memory {
 public:
  /// Makes (or replaces) a file of `bytes` bytes, reserving its space, and maps it on all ranks.
  static plain_memory create(const std::filesystem::path& file, std::uint64_t bytes, const ranks& all);
  /// Maps a file that create() has made; throws bad_option where it has not so many bytes.
  static plain_memory open(const std::filesystem::path& file, std::uint64_t bytes);
  /// Anonymous memory with the content of a file, one and the same on all ranks.  Each rank reads
  /// its own `parts`: the system charges memory to the process that first touches it.
  static plain_memory read_from(const std::filesystem::path& file, std::vector<byte_range> parts, const ranks& all);

  plain_memory(plain_memory&& o) noexcept;
  plain_memory& operator=(plain_memory&& o) noexcept;
  ~plain_memory();

  std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Returns when the file is on its disk: the mapped one, or the parts that this rank had read.
  void writeback();

 private:
  plain_memory(std::byte* data, std::uint64_t size) : data_(data), size_(size) {}
  static plain_memory anonymous(std::uint64_t bytes, const ranks& all);
  void read_parts();
  void write_parts() const;

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::filesystem::path file_;     // anonymous memory: where it came from
  std::vector<byte_range> parts_;  // ... and what of it this rank has read
};

template <class T, std::size_t N>
class plain_array {
 public:
  using extents_type = std::array<std::size_t, N>;

  plain_array(plain_memory memory, const extents_type& extents, const ranks& all)
      : memory_(std::move(memory)), extents_(extents), ranks_(&all) {}
  /// In anonymous memory, with the content of a file.
  static plain_array read_from(const std::filesystem::path& file, const extents_type& extents, const ranks& all) {
    const auto [first, last] = rows_of(extents, all);
    const std::size_t row = sizeof(T) * (N == 1 ? 1 : extents[N - 1]);
    return {plain_memory::read_from(file, {{first * row, last * row}}, all), extents, all};
  }

  T* data() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t extent(std::size_t i) const noexcept { return extents_[i]; }
  void writeback() { memory_.writeback(); }
  /// The ranks share the memory: they need only wait for each other.
  void sync() { ranks_->barrier(); }
  void sync_halo() { ranks_->barrier(); }
  /// Rows first <= i < second.
  std::pair<std::size_t, std::size_t> local_rows() const { return rows_of(extents_, *ranks_); }

  decltype(auto) operator[](std::size_t i) const noexcept {
    static_assert(N == 1 || N == 2);
    if constexpr (N == 1)
      return (data()[i]);
    else
      return data() + i * extents_[1];
  }

 private:
  static std::pair<std::size_t, std::size_t> rows_of(const extents_type& extents, const ranks& all) {
    const auto r = static_cast<std::size_t>(all.rank()), n = static_cast<std::size_t>(all.size());
    return {extents[0] * r / n, extents[0] * (r + 1) / n};
  }

  plain_memory memory_;
  extents_type extents_;
  const ranks* ranks_;
};

/// A folder beside the store's files for the rival's, removed with what is in it at the end unless
/// the options keep it.
class rival_folder {
 public:
  /// In the first folder of a "local:" store; throws bad_option for another kind of store.  A folder
  /// that is kept is named after the program.
  rival_folder(const common_options& o, const std::string& program, const ranks& all);
  ~rival_folder();
  rival_folder(const rival_folder&) = delete;
  rival_folder& operator=(const rival_folder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// A file of `bytes` bytes, mapped: made, or left there by an earlier run (--stage compute).
  plain_memory map(const std::string& name, std::uint64_t bytes) const;

 private:
  bool creates_;
  bool keep_;
  std::filesystem::path path_;
  const ranks& ranks_;
};

}  // namespace examples
