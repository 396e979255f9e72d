#include "storage/service/node_locality.hpp"

#include <future>

namespace ooc::storage {

std::vector<known_locality> localities_of(std::span<const std::shared_ptr<io_service>> nodes) {
  std::vector<std::future<known_locality>> coming;
  for (const auto& n : nodes) {
    const auto told = std::make_shared<std::promise<known_locality>>();
    coming.push_back(told->get_future());
    n->find_locality([told](const failure& f, locality far) { told->set_value({f, far}); });
  }
  std::vector<known_locality> all;
  for (auto& one : coming) all.push_back(one.get());
  return all;
}

}  // namespace ooc::storage
