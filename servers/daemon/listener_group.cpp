#include "daemon/listener_group.hpp"

namespace ooc::servers {

void listener_group::start(const std::vector<std::string>& addresses, bool keyed) {
  for (const std::string& address : addresses)
    for (auto& l : listener::open(context_, address, keyed, accepted_)) all_.push_back(std::move(l));
  for (const auto& l : all_) l->start();
}

void listener_group::stop() {
  for (const auto& l : all_) l->stop();
}

std::vector<std::string> listener_group::addresses() const {
  std::vector<std::string> texts;
  for (const auto& l : all_) texts.push_back(l->address());
  return texts;
}

}  // namespace ooc::servers
