#include "storage/node_distances.hpp"

#include <future>

namespace ooc::storage {

std::vector<known_distance> distances_of(std::span<const std::shared_ptr<io_service>> nodes) {
  std::vector<std::future<known_distance>> coming;
  for (const auto& n : nodes) {
    const auto told = std::make_shared<std::promise<known_distance>>();
    coming.push_back(told->get_future());
    n->how_far([told](const failure& f, distance far) { told->set_value({f, far}); });
  }
  std::vector<known_distance> all;
  for (auto& one : coming) all.push_back(one.get());
  return all;
}

}  // namespace ooc::storage
