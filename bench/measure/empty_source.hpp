// A source of blocks that has nothing to load and takes every store: the pager without a disk.
#pragma once

#include "runtime/blocks/block_source.hpp"

namespace bench {

class empty_source final : public ooc::detail::block_source {
 public:
  /// `at_once`: what is touched counts as read, by the thread that touches it, as a grain is.
  explicit empty_source(bool at_once = false) noexcept : at_once_(at_once) {}

  void load(ooc::detail::block_index, ooc::detail::load_part, std::byte*, completion done) override { done({}, 0); }
  std::uint64_t load_inline(ooc::detail::block_index, std::byte*) noexcept override { return at_once_; }
  void store(ooc::detail::block_index, const std::byte*, completion done) override { done({}, 0); }
  void store_diff(ooc::detail::block_index, const std::byte*, const std::byte*, completion done) override {
    done({}, 0);
  }
  bool nothing_to_load(ooc::detail::block_index, ooc::detail::load_part) const noexcept override { return !at_once_; }

 private:
  const bool at_once_;
};

}  // namespace bench
