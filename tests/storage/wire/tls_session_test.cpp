// Both ends of a TLS session in this process, and somebody in between.
#include "storage/wire/tls_session.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <thread>

#include "support/random_seed.hpp"
#include "support/raw_connection.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;
using namespace ooc::wire;
using progress = tls_session::progress;
using side = tls_session::side;

namespace {

struct sockets {
  explicit sockets(bool blocking = false) {
    int two[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0, two) == 0);
    left = file_descriptor(two[0]);
    right = file_descriptor(two[1]);
  }
  file_descriptor left, right;
};

/// Client, somebody who passes on what they send, and server.
struct meeting {
  meeting(key_ptr clients, key_ptr servers)
      : client(near.left.get(), side::client, std::move(clients)),
        server(far.right.get(), side::server, std::move(servers)) {}

  std::string taken(int from) {
    std::string bytes(1 << 20, '\0');
    const ssize_t n = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }
  /// Bytes that the client has sent, which the server does not have yet; and the other way.
  std::string from_client() { return taken(near.right.get()); }
  std::string from_server() { return taken(far.left.get()); }
  void to_server(const std::string& s) { REQUIRE(send_all(far.left, s)); }
  void to_client(const std::string& s) { REQUIRE(send_all(near.right, s)); }

  bool shake_hands() {
    for (int i = 0; i < 20; ++i) {
      const progress c = client.handshake();
      to_server(from_client());
      const progress s = server.handshake();
      to_client(from_server());
      if (c == progress::done && s == progress::done) return true;
      if (s == progress::failed) (void)client.handshake();
      if (c == progress::failed || s == progress::failed) {
        UNSCOPED_INFO("client: " << client.fault().what << "; server: " << server.fault().what);
        return false;
      }
    }
    return false;
  }

  sockets near, far;
  tls_session client, server;
};

ssize_t send_text(tls_session& t, const std::string& text) {
  const iovec whole{const_cast<char*>(text.data()), text.size()};
  return t.send({&whole, 1});
}

std::string received(tls_session& t, std::size_t n = 1000) {
  std::string text(n, '\0');
  const iovec whole{text.data(), text.size()};
  const ssize_t got = t.receive({&whole, 1});
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (got < 0) text = errno == EBADMSG ? "altered" : errno == EAGAIN ? "" : "lost";
  return text;
}

bool says(const failure& f, const std::string& what) {
  INFO(f.what);
  return f && f.what.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("holders of keys of one cluster prove them, and the server knows who is there") {
  const key_ptr cluster = access_key::random();
  const key_ptr alice = cluster->for_user({"alice", 1000, {100, 27}});
  {
    meeting m(cluster, cluster);
    REQUIRE(m.shake_hands());
    CHECK_FALSE(m.server.peer().user);
  }
  meeting m(alice, cluster);
  REQUIRE(m.shake_hands());
  CHECK(m.server.peer().user == alice->holder().user);
  CHECK(m.server.peer().identity == alice->holder().identity);
  CHECK(send_text(m.client, "hello") == 5);
  const std::string wire = m.from_client();
  CHECK(wire.find("hello") == std::string::npos);
  m.to_server(wire);
  CHECK(received(m.server) == "hello");
}

TEST_CASE("keys of two clusters part on both sides, with the reason") {
  const key_ptr one = access_key::random(), other = access_key::random();
  for (const key_ptr& mine : {one, one->for_user({"alice", 1000, {100}})}) {
    meeting m(mine, other);
    CHECK_FALSE(m.shake_hands());
    CHECK(says(m.client.fault(), "wrong cluster key"));
    CHECK(m.client.fault().code == std::errc::permission_denied);
    CHECK(says(m.server.fault(), "wrong cluster key"));
  }
}

TEST_CASE("who writes another user, group or serial into an identity has no secret for it") {
  const key_ptr cluster = access_key::random();
  const key_ptr alice = cluster->for_user({"alice", 1000, {100}});
  temporary_folder folder;
  alice->write(folder / "alice");
  std::ifstream in(folder / "alice");
  std::string line;
  std::getline(in, line);
  const auto forged = [&](const std::string& from, const std::string& to) {
    std::string text = line;
    text.replace(text.find(from), from.size(), to);
    const auto file = folder / ("forged" + std::to_string(std::hash<std::string>()(to)));
    std::ofstream(file) << text << "\n";
    ::chmod(file.c_str(), 0600);
    return access_key::read(file);
  };
  const std::string start = "oocarray-3:user:alice:1000:100:";
  for (const std::string to :
       {"oocarray-3:user:alice:0:100:", "oocarray-3:user:bob:1000:100:", "oocarray-3:user:alice:1000:100,0:"}) {
    meeting m(forged(start, to), cluster);
    CHECK_FALSE(m.shake_hands());
    CHECK(says(m.server.fault(), "wrong cluster key"));
    CHECK(says(m.client.fault(), "wrong cluster key"));
  }
  // ... nor does it make one the cluster's key.
  const std::size_t end = line.rfind(' ');
  const std::string fingerprint = line.substr(end - 16, 16);
  meeting m(forged(line.substr(line.find("oocarray-3"), end - line.find("oocarray-3")),
                   start + "0123456789abcdef:" + fingerprint),
            cluster);
  CHECK_FALSE(m.shake_hands());
}

TEST_CASE("an impostor without the key does not get through with a certificate") {
  SSL_CTX* context = ::SSL_CTX_new(::TLS_server_method());
  EVP_PKEY* pair = ::EVP_RSA_gen(2048);
  X509* certificate = ::X509_new();
  ::X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  ::X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  ::X509_set_pubkey(certificate, pair);
  ::X509_sign(certificate, pair, ::EVP_sha256());
  REQUIRE(::SSL_CTX_use_certificate(context, certificate) == 1);
  REQUIRE(::SSL_CTX_use_PrivateKey(context, pair) == 1);
  sockets line(true);
  std::thread impostor([&] {
    SSL* ssl = ::SSL_new(context);
    ::SSL_set_fd(ssl, line.right.get());
    CHECK(::SSL_accept(ssl) != 1);
    ::SSL_free(ssl);
  });
  tls_session client(line.left.get(), side::client, access_key::random());
  progress p{};
  while ((p = client.handshake()) == progress::wants_read) {
    pollfd fd{line.left.get(), POLLIN, 0};
    ::poll(&fd, 1, 10'000);
  }
  CHECK(p == progress::failed);
  CHECK(says(client.fault(), "does not prove"));
  ::shutdown(line.left.get(), SHUT_RDWR);
  impostor.join();
  ::X509_free(certificate);
  ::EVP_PKEY_free(pair);
  ::SSL_CTX_free(context);
}

TEST_CASE("a byte that was changed on its way ends the session, and nothing wrong is received") {
  std::mt19937_64 random(random_seed("changed bytes"));
  const key_ptr key = access_key::random();
  for (int i = 0; i < 60; ++i) {
    meeting m(key, key);
    REQUIRE(m.shake_hands());
    const std::string text(between(random, 1, 40'000), 'x');
    REQUIRE(send_text(m.client, text) == static_cast<ssize_t>(text.size()));
    std::string wire = m.from_client();
    wire[random() % wire.size()] ^= static_cast<char>(1 << random() % 8);
    m.to_server(wire);
    ::shutdown(m.far.left.get(), SHUT_WR);  // a length that was changed may ask for more
    std::string got, part;
    do {
      part = received(m.server, 100'000);
      if (part != "altered") got += part;
    } while (part != "altered" && !part.empty());
    CHECK(got == text.substr(0, got.size()));
    CHECK(got.size() < text.size());
  }
}

TEST_CASE("records that are repeated, exchanged, left out or sent back are refused") {
  const key_ptr key = access_key::random();
  const auto try_with = [&](auto what) {
    meeting m(key, key);
    REQUIRE(m.shake_hands());
    REQUIRE(send_text(m.client, "one") == 3);
    const std::string one = m.from_client();
    REQUIRE(send_text(m.client, "two") == 3);
    const std::string two = m.from_client();
    what(m, one, two);
    std::string all, part;
    while (!(part = received(m.server)).empty() && part != "altered") all += part;
    CHECK(part == "altered");
    CHECK(received(m.server) == "altered");  // also from then on
    return all;
  };
  using text = const std::string&;
  CHECK(try_with([](meeting& m, text one, text) { m.to_server(one + one); }) == "one");
  CHECK(try_with([](meeting& m, text one, text two) { m.to_server(two + one); }).empty());
  CHECK(try_with([](meeting& m, text, text two) { m.to_server(two); }).empty());
  CHECK(try_with([](meeting& m, text, text) {
          REQUIRE(send_text(m.server, "back") == 4);
          m.to_server(m.from_server());
        }).empty());
}

TEST_CASE("what was recorded opens no second session") {
  const key_ptr key = access_key::random();
  meeting first(key, key);
  REQUIRE(first.client.handshake() == progress::wants_read);
  const std::string hello = first.from_client();
  first.to_server(hello);
  REQUIRE(first.server.handshake() == progress::wants_read);
  first.to_client(first.from_server());
  REQUIRE(first.client.handshake() == progress::done);
  const std::string finished = first.from_client();
  first.to_server(finished);
  REQUIRE(first.server.handshake() == progress::done);

  meeting second(key, key);
  second.to_server(hello);
  CHECK(second.server.handshake() == progress::wants_read);
  second.to_server(finished);
  CHECK(second.server.handshake() == progress::failed);
}

TEST_CASE("scattered bytes of any lengths arrive in order, while the socket takes few at a time") {
  std::mt19937_64 random(random_seed("scattered"));
  const key_ptr key = access_key::random();
  sockets line;
  tls_session client(line.left.get(), side::client, key), server(line.right.get(), side::server, key);
  for (int done = 0; done != 2;) {
    done = client.handshake() == progress::done;
    done += server.handshake() == progress::done;
    REQUIRE_FALSE(client.fault());
    REQUIRE_FALSE(server.fault());
  }
  std::string sent, got;
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> parts(between(random, 1, 20));
    std::vector<iovec> from;
    for (std::string& p : parts) {
      p.resize(random() % 3 == 0 ? between(random, 0, 300'000) : between(random, 0, 100));
      for (char& c : p) c = static_cast<char>(random());
      from.push_back({p.data(), p.size()});
      sent += p;
    }
    std::string space(70'000, '\0');
    for (int i = 0; got.size() < sent.size(); ++i) {
      REQUIRE(i < 100'000);
      std::span<iovec> left(from);
      if (const ssize_t n = client.send(left); n > 0) {
        auto bytes = static_cast<std::size_t>(n);
        std::size_t k = 0;
        while (k < from.size() && bytes >= from[k].iov_len) bytes -= from[k++].iov_len;
        from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(k));
        if (bytes != 0) {
          from[0].iov_base = static_cast<char*>(from[0].iov_base) + bytes;
          from[0].iov_len -= bytes;
        }
      } else {
        REQUIRE((n == 0 || errno == EAGAIN));
      }
      std::array<iovec, 2> to{iovec{space.data(), 1000}, iovec{space.data() + 1000, 69'000}};
      if (const ssize_t n = server.receive(to); n > 0)
        got.append(space, 0, static_cast<std::size_t>(n));
      else
        REQUIRE(errno == EAGAIN);
    }
  }
  CHECK(got == sent);
}
