// All the sockets that a server listens on.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/listener.hpp"

namespace ooc::servers {

class listener_group {
 public:
  /// `accepted` gets each new connection, see listener.
  listener_group(boost::asio::io_context& context, listener::handler accepted)
      : context_(context), accepted_(std::move(accepted)) {}

  /// Listens on every one of `addresses`, then accepts.  Throws as listener::open() does.
  void start(const std::vector<std::string>& addresses, bool keyed);
  void stop();
  /// Where it listens, with the ports that the system gave for port 0.
  std::vector<std::string> addresses() const;

 private:
  boost::asio::io_context& context_;
  const listener::handler accepted_;
  std::vector<std::shared_ptr<listener>> all_;
};

/// Where clients find a server: at the addresses that it was told to announce, or where it listens.  Throws usage_error
/// for what is no address.
std::vector<std::string> announced(const std::vector<std::string>& given, const std::vector<std::string>& listening);

}  // namespace ooc::servers
