#include "attack/sharing/shared_content.hpp"

#include <algorithm>

#include "oocarray/units.hpp"

namespace ooc::attack {

std::byte byte_of(write_number n, std::uint64_t offset, std::span<const std::byte> fill) noexcept {
  if (n == 0) return fill.empty() ? std::byte{0} : fill[offset % fill.size()];
  return static_cast<std::byte>(((offset + 1) * 2654435761u + n * 0x9e3779b97f4a7c15u) >> 29);
}

void shared_content::forget(extent e) {
  std::vector<other> kept;
  for (const other& o : others_) {
    if (o.where.begin < e.begin) kept.push_back({{o.where.begin, std::min(o.where.end, e.begin)}, o.number});
    if (o.where.end > e.end) kept.push_back({{std::max(o.where.begin, e.end), o.where.end}, o.number});
  }
  others_ = std::move(kept);
}

void shared_content::write(const std::vector<extent>& where, write_number n) {
  for (const extent& e : where) {
    if (e.end > numbers_.size()) numbers_.resize(e.end);
    std::fill(numbers_.begin() + static_cast<std::ptrdiff_t>(e.begin),
              numbers_.begin() + static_cast<std::ptrdiff_t>(e.end), n);
    forget(e);
  }
}

void shared_content::truncate(std::uint64_t size) {
  forget({size, ~std::uint64_t{0}});
  numbers_.resize(size);
}

void shared_content::has_size(std::uint64_t size) {
  truncate(size);
  sizes_.clear();
}

shared_content shared_content::any_of(const std::vector<shared_content>& all) {
  shared_content result = all.front();
  for (const shared_content& c : all) {
    if (c.size() > result.size()) result.numbers_.resize(c.size());
    result.sizes_.insert(c.size());
  }
  if (result.sizes_.size() == 1) result.sizes_.clear();
  for (std::size_t k = 1; k < all.size(); ++k) {
    const shared_content& c = all[k];
    result.others_.insert(result.others_.end(), c.others_.begin(), c.others_.end());
    for (std::uint64_t i = 0; i < result.size();) {
      const write_number n = c.number(i);
      std::uint64_t end = i + 1;
      if (n != result.numbers_[i]) {
        while (end < result.size() && c.number(end) == n && result.numbers_[end] != n) ++end;
        result.others_.push_back({{i, end}, n});
      }
      i = end;
    }
  }
  // Most of them have come with each of the contents.
  std::sort(result.others_.begin(), result.others_.end());
  result.others_.erase(std::unique(result.others_.begin(), result.others_.end()), result.others_.end());
  return result;
}

bool shared_content::may_be(std::uint64_t offset, std::byte b, std::span<const std::byte> fill) const noexcept {
  if (b == byte_of(number(offset), offset, fill)) return true;
  return std::any_of(others_.begin(), others_.end(), [&](const other& o) {
    return o.where.begin <= offset && offset < o.where.end && b == byte_of(o.number, offset, fill);
  });
}

touched_chunks::touched_chunks(const ooc::striping& s, const std::vector<extent>& where) {
  for (const extent& e : where)
    for (std::uint64_t at = e.begin; at < e.end;) {
      const std::uint64_t on_node = s.node_offset(at);
      chunks_.insert({s.stripe_index_of(at), on_node / 4_KiB});
      at += std::min(s.sf - at % s.sf, 4_KiB - on_node % 4_KiB);
    }
}

touched_chunks touched_chunks::of_cut(const ooc::striping& s, std::uint64_t size) {
  touched_chunks t(s, {});
  for (std::uint64_t i = 0; i < s.nn; ++i) t.chunks_.insert({i, s.object_size(i, size) / 4_KiB});
  return t;
}

bool touched_chunks::meet(const touched_chunks& others) const {
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& c) { return others.chunks_.count(c) != 0; });
}

}  // namespace ooc::attack
