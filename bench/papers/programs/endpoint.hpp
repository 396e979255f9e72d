#pragma once

#include <boost/asio/ip/basic_endpoint.hpp>
#include <stdexcept>
#include <string>

namespace papers {

/// "ADDRESS:PORT" as an endpoint of TCP or UDP.  Throws std::runtime_error.
template <class Protocol>
boost::asio::ip::basic_endpoint<Protocol> endpoint(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) throw std::runtime_error(address + ": give ADDRESS:PORT");
  return {boost::asio::ip::make_address(address.substr(0, colon)),
          static_cast<std::uint16_t>(std::stoul(address.substr(colon + 1)))};
}

}  // namespace papers
