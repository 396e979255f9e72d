// Clients that are malformed, slow, idle or flood a server, beside one that is innocent and
// measures how long its small reads and its look-ups take.  On loopback; every attacker ends by
// itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <iostream>
#include <thread>

#include "attack/innocent_client.hpp"
#include "attack/served_store.hpp"
#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "storage/wire/messages.hpp"
#include "support/pauses.hpp"
#include "support/raw_connection.hpp"

namespace ooc::attack {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::file_descriptor;

// Of each server; the metadata server's database has a cache beside that.
constexpr std::uint64_t memory_limit = 64_MiB, memory_beside = 64_MiB, database_cache = 16_MiB;

struct target {
  std::string metad, iod;  ///< addresses
  clock::time_point until;
};

// --- The attackers.  A connection that the server ends is made anew, not too often.

std::string random_bytes(round& r, std::size_t n) {
  std::string s(n, '\0');
  for (char& c : s) c = static_cast<char>(r.dice()());
  return s;
}

file_descriptor greet(round& r, const target& t, bool& metadata) {
  metadata = r.one_in(2);
  return testing::welcomed(metadata ? t.metad : t.iod, metadata ? wire::server_role::metadata : wire::server_role::io);
}

std::string random_frame(round& r) {
  wire::frame_header h;
  h.kind = static_cast<wire::frame_kind>(r.one_in(4)   ? r.between(0, 255)
                                         : r.one_in(2) ? r.between(16, 27)
                                                       : r.between(48, 50));
  h.id = r.between(0, 5);
  h.flags = static_cast<std::uint16_t>(r.between(0, 7));
  h.sums = r.one_in(3) ? static_cast<std::uint32_t>(r.dice()()) : 0;
  std::string body = random_bytes(r, r.between(0, 60));
  // Fields that a decoder takes for its own: tags of small numbers.
  for (char& c : body)
    if (r.one_in(2)) c = static_cast<char>(r.between(0, 9) << 3 | r.between(0, 2));
  return wire::encode_frame(h, body, r.one_in(3) ? static_cast<std::uint32_t>(r.between(0, 100'000)) : 0);
}

void malformed(round& r, const target& t) {
  bool metadata = false;
  const file_descriptor fd =
      r.one_in(3) ? testing::raw_connection(r.one_in(2) ? t.metad : t.iod) : greet(r, t, metadata);
  for (std::uint64_t n = r.between(1, 30); n > 0 && clock::now() < t.until; --n) {
    std::string f = r.one_in(3) ? random_bytes(r, r.between(1, 200)) : random_frame(r);
    if (r.one_in(3)) f[r.between(0, f.size() - 1)] ^= static_cast<char>(1 << r.between(0, 7));
    if (!testing::send_all(fd, f)) break;
  }
  testing::random_pause(milliseconds(r.between(0, 20)));
}

void idle(round& r, const target& t) {
  std::vector<file_descriptor> held;
  while (clock::now() < t.until) {
    for (int n = 0; n < 20 && held.size() < 900; ++n) {
      bool metadata = false;
      held.push_back(r.one_in(2) ? testing::raw_connection(r.one_in(2) ? t.metad : t.iod) : greet(r, t, metadata));
    }
    testing::let_pass(milliseconds(20));  // more come all the time
  }
}

void slow(round& r, const target& t) {
  std::vector<file_descriptor> held;
  for (int n = 0; n < 16; ++n) {
    bool metadata = false;
    held.push_back(greet(r, t, metadata));
    wire::frame_header h;
    h.kind = metadata ? wire::frame_kind::metadata : wire::frame_kind::write;
    h.id = 1;
    const std::string f = wire::encode_frame(h, random_bytes(r, 2000), metadata ? 0 : 1 << 20);
    testing::send_all(held.back(), std::string_view(f).substr(0, 100));
  }
  while (clock::now() < t.until) {
    for (const file_descriptor& fd : held) testing::send_all(fd, "x");
    testing::let_pass(milliseconds(10));  // which is what makes it slow
  }
}

/// Many small calls whose answers nobody takes, and, where it has a file, long ones.
void flood(round& r, const target& t) {
  bool metadata = false;
  const file_descriptor fd = greet(r, t, metadata);
  wire::frame_header h;
  h.kind = metadata ? wire::frame_kind::cluster : r.one_in(2) ? wire::frame_kind::ping : wire::frame_kind::stats;
  std::string many;
  for (h.id = 1; h.id <= 500; ++h.id) many += wire::encode_frame(h, "");
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  const bool takes = r.one_in(2);
  std::string answers(1 << 16, '\0');
  while (clock::now() < t.until) {
    const ssize_t n = ::send(fd.get(), many.data(), many.size(), MSG_NOSIGNAL);
    // In the middle of a frame the rest is malformed, which is as good an attack as any.
    if (n < 0 && errno != EAGAIN) return;
    if (takes)
      while (::recv(fd.get(), answers.data(), answers.size(), 0) > 0) {
      }
    testing::let_pass(milliseconds(1));  // the others have their turn of the processors
  }
}

/// Streams through the library: reads and writes as fast as it can, from many connections.
void greedy(round& r, const std::string& url, const target& t) {
  const store s = store::open(url);
  const std::string name = "greedy" + std::to_string(r.dice()());
  file f = file::create(s, name, {.size = 8 << 20});
  std::vector<std::byte> much(4 << 20);
  while (clock::now() < t.until) {
    f.write_at(0, much);
    f.read_at(0, much);
  }
}

/// Requests of a client that may read a file, one after another without waiting for the answers: verifications of all
/// of it, or reads of 4 KiB each.
void pipeline(round& r, const std::string& url, const target& t) {
  const store s = store::open(url);
  const std::string name = "pipelined" + std::to_string(r.dice()());
  const std::uint64_t size = 32_MiB;
  {
    file f = file::create(s, name, {.size = size});
    f.write_at(0, std::vector<std::byte>(size, std::byte{7}));
  }
  const auto opened = s.core()->open(name, storage::open_mode::read);
  const bool verify = r.one_in(2), takes = r.one_in(2);
  const file_descriptor fd = testing::welcomed(t.iod, wire::server_role::io);
  wire::io_request what;
  what.file = opened.file->shape_handle();
  wire::frame_header h;
  h.kind = verify ? wire::frame_kind::verify : wire::frame_kind::read;
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  std::string waiting, answers(1 << 16, '\0');
  while (clock::now() < t.until) {
    if (waiting.empty()) {
      ++h.id;
      if (!verify)
        what.wanted = std::make_shared<const request>(request::contiguous(4096 * r.between(0, size / 4096 - 1), 4096));
      waiting = wire::encode_frame(h, wire::encode(what));
    }
    const ssize_t n = ::send(fd.get(), waiting.data(), waiting.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN) return;
    if (n > 0) waiting.erase(0, static_cast<std::size_t>(n));
    if (takes)
      while (::recv(fd.get(), answers.data(), answers.size(), 0) > 0) {
      }
    if (n < 0) testing::let_pass(milliseconds(1));  // the server takes no more now
  }
}

void attack_until_then(round& r, int which, const std::string& url, const target& t) {
  while (clock::now() < t.until) {
    try {
      switch (which) {
        case 0: malformed(r, t); break;
        case 1: idle(r, t); break;
        case 2: slow(r, t); break;
        case 3: flood(r, t); break;
        case 4: greedy(r, url, t); break;
        default: pipeline(r, url, t);
      }
    } catch (const std::exception&) {
      // Refused, which it may be; it comes again, not too often.
      testing::let_pass(milliseconds(5));
    }
  }
}

std::string address_after(const std::string& text, const std::string& word) {
  const auto at = text.find(word);
  if (at == std::string::npos) throw finding(verdict::failed, "no " + word + " in " + text);
  return text.substr(at + word.size(), text.find_first_of(" \n/", at + word.size()) - at - word.size());
}

std::string log_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

void hostile_clients(round& r) {
  const auto dir = r.folder() / "store";
  served_store servers(dir, 1, {"--iod-memory", "64"});
  target t;
  t.metad = address_after(servers.url(), "ooc://");
  t.iod = address_after(log_of(dir / "log" / "iod-0.log"), "listening on ");

  const std::uint64_t attackers = r.between(1, 4);
  const milliseconds attack_time(r.between(2000, 5000)), calm(800);
  const pid_t innocent = r.in_child([&] {
    const store s = store::open(servers.url());
    make_innocent_file(s);
    be_innocent(r, s, calm, attack_time);
    return 0;
  });
  std::vector<pid_t> all;
  std::string names;
  t.until = clock::now() + calm + attack_time;
  for (std::uint64_t n = 0; n < attackers; ++n) {
    const int which = static_cast<int>(r.between(0, 5));
    const std::uint64_t seed = r.dice()();
    names += std::string(names.empty() ? "" : ", ") +
             std::array{"malformed", "idle", "slow", "flood", "greedy", "pipeline"}[static_cast<std::size_t>(which)];
    all.push_back(r.in_child([&, which, seed] {
      round own(seed, r.folder(), r.counts());
      testing::let_pass(calm);  // in which the innocent client measures the machine
      attack_until_then(own, which, servers.url(), t);
      return 0;
    }));
  }
  std::cout << "attackers: " << names << std::endl;
  std::uint64_t most = 0, most_of_metad = 0;
  while (clock::now() < t.until) {
    most = std::max(most, servers.memory("iod-0"));
    most_of_metad = std::max(most_of_metad, servers.memory("metad"));
    testing::let_pass(milliseconds(50));  // between two looks
  }
  for (const pid_t a : all) r.wait_for(a, std::chrono::seconds(60), "an attacker");
  if (const int s = r.wait_for(innocent, std::chrono::seconds(60), "the innocent client, attacked by " + names))
    throw finding(verdict::failed,
                  "the innocent client ended with status " + std::to_string(s) + ", attacked by " + names);
  for (const char* who : {"metad", "iod-0"})
    if (::kill(servers.pid(who), 0) != 0)
      throw finding(verdict::failed, std::string(who) + " has ended, attacked by " + names);
  if (most > memory_limit + memory_beside)
    throw finding(verdict::failed, "the I/O server took " + std::to_string(most >> 20) + " MiB, attacked by " + names);
  if (most_of_metad > memory_limit + memory_beside + database_cache)
    throw finding(verdict::failed,
                  "the metadata server took " + std::to_string(most_of_metad >> 20) + " MiB, attacked by " + names);
  // Whoever comes next is served at once.
  const pid_t next = r.in_child([&] {
    read_innocently(r, store::open(servers.url()), clock::now() + milliseconds(50));
    return 0;
  });
  if (const int s = r.wait_for(next, std::chrono::seconds(10), "a client after the attack by " + names))
    throw finding(verdict::failed, "a client after the attack ended with status " + std::to_string(s));
}

}  // namespace ooc::attack
