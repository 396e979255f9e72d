#include "daemon/listener_group.hpp"

#include <unistd.h>

#include <climits>

#include "storage/wire/address.hpp"

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

std::vector<std::string> announced(const std::vector<std::string>& given, const std::vector<std::string>& listening) {
  if (!given.empty()) {
    for (const std::string& a : given) (void)wire::parse_address(a);
    return given;
  }
  std::vector<std::string> all;
  for (const std::string& text : listening) {
    wire::server_address a = wire::parse_address(text);
    if (a.host == "0.0.0.0" || a.host == "::") {
      char name[HOST_NAME_MAX + 1] = {};
      ::gethostname(name, sizeof name - 1);
      a.host = name;
    }
    all.push_back(a.text());
  }
  return all;
}

}  // namespace ooc::servers
