// A rank that pins a region of an array in the middle of a collective call, as another thread of it might.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "oocarray/ooc_array.hpp"
#include "support/thread_group.hpp"

namespace ooc::testing {

template <class Array>
struct pinning_group {
  pinning_group(std::shared_ptr<process_group> g, const typename Array::box_type& region)
      : ranks(std::move(g)), group(std::make_shared<watched_rank>(*ranks, [this, region](std::string_view) {
          if (array == nullptr || calls_before-- > 0) return;
          pinned.emplace(std::as_const(*std::exchange(array, nullptr)).pin(region));
        })) {}

  std::shared_ptr<process_group> ranks;
  Array* array = nullptr;  ///< to be pinned, after this rank has done its part of a call
  int calls_before = 0;    ///< in which it is not
  std::optional<pin_guard<const typename Array::value_type>> pinned;
  std::shared_ptr<process_group> group;
};

}  // namespace ooc::testing
