#include "oocarray/blocking.hpp"

#include <algorithm>
#include <limits>

#include "oocarray/error.hpp"

namespace ooc {
namespace {

constexpr std::uint64_t max_bytes = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const std::string& what) { throw usage_error(errc::invalid_request, "blocking: " + what); }

}  // namespace

block_coordinates::block_coordinates(std::span<const std::uint64_t> c) : size_(c.size()) {
  if (c.size() > max_dimensions)
    refuse(std::to_string(c.size()) + " coordinates; at most " + std::to_string(max_dimensions));
  std::copy(c.begin(), c.end(), at_.begin());
}

std::string block_coordinates::text() const {
  std::string s = "(";
  for (std::size_t i = 0; i < size_; ++i) s += (i ? ", " : "") + std::to_string(at_[i]);
  return s + ")";
}

void blocking::check() const {
  const std::size_t d = ne.size();
  if (d == 0 || d > block_coordinates::max_dimensions)
    refuse("ne has " + std::to_string(d) + " dimensions; 1 to " + std::to_string(block_coordinates::max_dimensions) +
           " are possible");
  if (nb.size() != d || (!bf.empty() && bf.size() != d))
    refuse("ne, nb and bf have " + std::to_string(d) + ", " + std::to_string(nb.size()) + " and " +
           std::to_string(bf.size()) + " dimensions; they must agree (bf may be empty)");
  if (rs == 0) refuse("rs is 0; a record has at least one byte");
  std::uint64_t bytes = rs;
  for (std::size_t i = 0; i < d; ++i) {
    if (ne[i] == 0 || nb[i] == 0 || (!bf.empty() && bf[i] == 0))
      refuse("ne, nb or bf is 0 in dimension " + std::to_string(i + 1));
    if (__builtin_mul_overflow(bytes, ne[i], &bytes) || __builtin_mul_overflow(bytes, nb[i], &bytes) ||
        bytes > max_bytes)
      refuse("the matrix has 2^63 bytes or more; make rs, ne or nb smaller");
  }
}

std::uint64_t blocking::factor(std::size_t i) const noexcept { return bf.empty() ? 1 : std::min(bf[i], nb[i]); }

std::uint64_t blocking::file_bytes() const noexcept {
  std::uint64_t bytes = rs;
  for (std::size_t i = 0; i < dimensions(); ++i) bytes *= extent(i);
  return bytes;
}

std::uint64_t blocking::block_bytes() const noexcept {
  std::uint64_t bytes = rs;
  for (std::uint64_t n : ne) bytes *= n;
  return bytes;
}

std::uint64_t blocking::superblock_bytes() const noexcept {
  std::uint64_t bytes = block_bytes();
  for (std::size_t i = 0; i < dimensions(); ++i) bytes *= factor(i);
  return bytes;
}

std::uint64_t blocking::superblocks(std::size_t i) const noexcept {
  const std::uint64_t f = factor(i);
  return nb[i] / f + (nb[i] % f != 0);
}

std::uint64_t blocking::superblocks() const noexcept {
  std::uint64_t n = 1;
  for (std::size_t i = 0; i < dimensions(); ++i) n *= superblocks(i);
  return n;
}

bool blocking::contains(const block_coordinates& block) const noexcept {
  if (block.size() != dimensions()) return false;
  for (std::size_t i = 0; i < dimensions(); ++i)
    if (block[i] >= nb[i]) return false;
  return true;
}

record_box blocking::block_box(const block_coordinates& block) const noexcept {
  record_box box{block, block};
  for (std::size_t i = 0; i < dimensions(); ++i) {
    box.begin[i] = block[i] * ne[i];
    box.extent[i] = ne[i];
  }
  return box;
}

std::uint64_t blocking::superblock_of(const block_coordinates& block) const noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = dimensions(); i-- > 0;) number = number * superblocks(i) + block[i] / factor(i);
  return number;
}

record_box blocking::superblock_box(std::uint64_t superblock) const noexcept {
  record_box box{std::span<const std::uint64_t>{nb}, std::span<const std::uint64_t>{nb}};
  for (std::size_t i = 0; i < dimensions(); ++i) {
    const std::uint64_t first = superblock % superblocks(i) * factor(i);
    superblock /= superblocks(i);
    box.begin[i] = first * ne[i];
    box.extent[i] = std::min(factor(i), nb[i] - first) * ne[i];
  }
  return box;
}

// Byte (r_1, ..., r_D) of the matrix is at rs * (r_1 + e_1 * (r_2 + e_2 * (r_3 + ...))), so a box
// is a run in dimension 1, repeated with the step of dimension 2, and so on.  Dimensions that the
// box spans whole are one run with the next: the levels below are only those that jump.
nested_request blocking::request_of(const record_box& box) const noexcept {
  nested_request r;
  std::uint64_t file_step = rs;
  std::uint64_t memory_step = rs;
  r.run = rs;
  std::array<stride_level, block_coordinates::max_dimensions> inner_first{};
  std::uint32_t depth = 0;
  for (std::size_t i = 0; i < dimensions(); ++i) {
    r.file_offset += box.begin[i] * file_step;
    if (depth == 0 && r.run == file_step)
      r.run *= box.extent[i];
    else if (box.extent[i] > 1)
      inner_first[depth++] = {box.extent[i], file_step, memory_step};
    file_step *= extent(i);
    memory_step *= box.extent[i];
  }
  r.depth = depth;
  std::reverse_copy(inner_first.begin(), inner_first.begin() + depth, r.levels.begin());
  return r;
}

}  // namespace ooc
