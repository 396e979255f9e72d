// Passes a token between hosts: one half of a pair, or one member of a ring.
//
//     tokens tcp|udp accept ADDRESS:PORT...        receives and sends back
//     tokens tcp|udp connect ADDRESS:PORT...       sends and waits for it
//     tokens tcp|udp accept ADDRESS:PORT... connect ADDRESS:PORT...
//                                                  receives from one, sends to the next
//
// An address for each channel.  A token of more than one packet is dealt out over the channels, as
// the papers' driver did; the next one begins at the channel after.  Prints "ready", then does what
// the lines of its standard input say:
//
//     lead BYTES BEGIN SECONDS SLOTS     sends tokens until SLOTS slots of SECONDS from BEGIN on
//                                        are over; answers with the tokens a second in each
//     follow BYTES                       passes tokens on until the last one; answers "0"
//
// BEGIN is a time of CLOCK_MONOTONIC.  Every host compares what it receives with what was sent.
#include <boost/asio.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include "clock.hpp"
#include "endpoint.hpp"
#include "token.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;

constexpr unsigned patience = 30;  ///< seconds without a token until the program gives up

/// Sockets of one direction of a hop, or of both, one for each channel.
template <class Protocol>
using channels = std::shared_ptr<std::vector<typename Protocol::socket>>;

/// How many parts `bytes` have on `count` channels: a datagram is a packet, a stream is cut no
/// finer than there are channels.
std::size_t parts(udp, std::size_t bytes, std::size_t) { return (bytes + 1471) / 1472; }
std::size_t parts(tcp, std::size_t bytes, std::size_t count) { return std::min(count, (bytes + 1447) / 1448); }

void send_part(tcp::socket& s, asio::const_buffer part) { asio::write(s, part); }
void send_part(udp::socket& s, asio::const_buffer part) { s.send(part); }
void receive_part(tcp::socket& s, asio::mutable_buffer part) { asio::read(s, part); }
void receive_part(udp::socket& s, asio::mutable_buffer part) {
  udp::endpoint from;
  if (s.receive_from(part, from) != part.size()) throw std::runtime_error("a datagram of wrong length");
  boost::system::error_code alone;
  s.remote_endpoint(alone);
  if (alone) s.connect(from);  // whoever sends first is the partner
}

/// One direction of a hop.
template <class Protocol>
class way {
 public:
  explicit way(channels<Protocol> c) : connections_(std::move(c)) {}

  void send(std::span<const std::byte> token) {
    deal(token, [](auto& socket, auto part) { send_part(socket, asio::buffer(part.data(), part.size())); });
  }
  void receive(std::span<std::byte> token) {
    deal(token, [](auto& socket, auto part) { receive_part(socket, asio::buffer(part.data(), part.size())); });
  }

 private:
  template <class Span, class F>
  void deal(Span token, F&& f) {
    auto& sockets = *connections_;
    const std::size_t n = parts(Protocol::v4(), token.size(), sockets.size());
    for (std::size_t i = 0; i < n; ++i, ++turn_) {
      const std::size_t first = token.size() * i / n;
      f(sockets[turn_ % sockets.size()], token.subspan(first, token.size() * (i + 1) / n - first));
    }
  }

  channels<Protocol> connections_;
  std::size_t turn_ = 0;  ///< parts so far: both ends count the same
};

channels<udp> connect(udp, asio::io_context& context, const std::vector<std::string>& addresses) {
  auto all = std::make_shared<std::vector<udp::socket>>();
  for (const std::string& a : addresses) {
    all->emplace_back(context, udp::v4());
    all->back().connect(papers::endpoint<udp>(a));
  }
  return all;
}

/// Connects, waiting until somebody listens there.
channels<tcp> connect(tcp, asio::io_context& context, const std::vector<std::string>& addresses) {
  auto all = std::make_shared<std::vector<tcp::socket>>();
  for (const std::string& a : addresses) {
    boost::system::error_code failed;
    do {
      tcp::socket s(context);
      s.connect(papers::endpoint<tcp>(a), failed);
      if (failed == asio::error::connection_refused)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      else if (failed)
        throw boost::system::system_error(failed, a);
      else
        all->push_back(std::move(s));
    } while (failed);
    all->back().set_option(tcp::no_delay(true));
  }
  return all;
}

/// The accepting half: bound at construction, so that others may send or connect from then on.
template <class Protocol>
class doors;

template <>
class doors<udp> {
 public:
  doors(asio::io_context& context, const std::vector<std::string>& addresses)
      : sockets_(std::make_shared<std::vector<udp::socket>>()) {
    for (const std::string& a : addresses) sockets_->emplace_back(context, papers::endpoint<udp>(a));
  }
  channels<udp> accept() { return sockets_; }

 private:
  channels<udp> sockets_;
};

template <>
class doors<tcp> {
 public:
  doors(asio::io_context& context, const std::vector<std::string>& addresses) {
    for (const std::string& a : addresses) acceptors_.emplace_back(context, papers::endpoint<tcp>(a));
  }
  channels<tcp> accept() {
    auto all = std::make_shared<std::vector<tcp::socket>>();
    for (tcp::acceptor& a : acceptors_) {
      all->push_back(a.accept());
      all->back().set_option(tcp::no_delay(true));
    }
    return all;
  }

 private:
  std::vector<tcp::acceptor> acceptors_;
};

template <class Protocol>
void lead(way<Protocol>& in, way<Protocol>& out, std::istringstream& order) {
  std::size_t bytes = 0;
  double begin = 0;
  double seconds = 0;
  std::size_t slots = 0;
  if (!(order >> bytes >> begin >> seconds >> slots)) throw std::runtime_error("lead: give four numbers");
  papers::token token(bytes);
  papers::meter meter(papers::now(), begin, seconds, slots);
  bool last = false;
  for (std::uint64_t n = 0; !last; ++n) {
    last = meter.over(papers::now());
    token.make(n, last);
    out.send(token.memory());
    in.receive(token.memory());
    meter.tick(papers::now());
    token.check(n);
  }
  for (const double rate : meter.rates()) std::printf("%.6g ", rate);
}

template <class Protocol>
void follow(way<Protocol>& in, way<Protocol>& out, std::istringstream& order) {
  std::size_t bytes = 0;
  if (!(order >> bytes)) throw std::runtime_error("follow: give BYTES");
  papers::token token(bytes);
  bool last = false;
  for (std::uint64_t n = 0; !last; ++n) {
    in.receive(token.memory());
    last = token.check(n);
    out.send(token.memory());
  }
  std::printf("0");
}

template <class Protocol>
void serve(const std::vector<std::string>& accepted, const std::vector<std::string>& connected) {
  asio::io_context context;
  papers::end_in(patience);
  doors<Protocol> door(context, accepted);
  channels<Protocol> to;
  channels<Protocol> from;
  if (!connected.empty()) to = connect(Protocol::v4(), context, connected);
  if (!accepted.empty()) from = door.accept();
  way<Protocol> in(from ? from : to);
  way<Protocol> out(to ? to : from);
  papers::end_in(0);
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream order(line);
    std::string what;
    order >> what;
    papers::end_in(patience);
    if (what == "lead")
      lead(in, out, order);
    else if (what == "follow")
      follow(in, out, order);
    else
      throw std::runtime_error("no such order: " + line);
    papers::end_in(0);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> accepted;
  std::vector<std::string> connected;
  std::vector<std::string>* words = nullptr;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "accept" || word == "connect")
      words = word == "accept" ? &accepted : &connected;
    else if (words)
      words->push_back(word);
  }
  const std::string protocol = argc > 1 ? argv[1] : "";
  try {
    if ((protocol != "tcp" && protocol != "udp") || (accepted.empty() && connected.empty())) {
      std::fprintf(stderr, "tokens: see the head of tokens.cpp for its arguments\n");
      return 2;
    }
    protocol == "tcp" ? serve<tcp>(accepted, connected) : serve<udp>(accepted, connected);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tokens: %s\n", e.what());
    return 1;
  }
}
