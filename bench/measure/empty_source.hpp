// A source of blocks that has nothing to load and takes every store: the pager without a disk.
#pragma once

#include "runtime/blocks/block_source.hpp"

namespace bench {

class empty_source final : public ooc::detail::block_source {
 public:
  void load(ooc::detail::block_index, ooc::detail::load_part, std::byte*,
            completion done) override {
    done({}, 0);
  }
  void store(ooc::detail::block_index, const std::byte*, completion done) override {
    done({}, 0);
  }
  void store_diff(ooc::detail::block_index, const std::byte*, const std::byte*,
                  completion done) override {
    done({}, 0);
  }
  bool nothing_to_load(ooc::detail::block_index, ooc::detail::load_part) const noexcept override {
    return true;
  }
};

}  // namespace bench
