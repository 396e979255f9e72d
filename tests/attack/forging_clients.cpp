// Clients of a keyed store that are not who they say: without a key, with a wrong or a forged one,
// with another user's capability, a changed or an expired one; and a server that impersonates the
// store's.  Every one of them is refused and has read and written nothing, the servers go on, and
// an innocent client does not notice.
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <fstream>
#include <future>
#include <iostream>
#include <thread>

#include "attack/keyed_store.hpp"
#include "support/pauses.hpp"
#include "support/raw_connection.hpp"

namespace ooc::attack {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using testing::file_descriptor;

/// Forgers know and have this.
struct loot : keyed_store {
  std::shared_ptr<storage::file_shape> innocent;  ///< alice's file, with her capability
  std::shared_ptr<storage::file_shape> own;       ///< mallory's file, with his
};

[[noreturn]] void came_through(const std::string& what) {
  throw finding(verdict::wrong, "a forger came through: " + what);
}

/// Anybody who gets an answer to this has come in.
template <class F>
void must_be_refused(round& r, const std::string& what, F&& f) {
  try {
    f();
  } catch (const error&) {
    ++r.counts().refused;
    return;
  }
  came_through(what);
}

/// Reads and writes of a file with a capability that is not for this: both refused, no byte
/// delivered.
void must_reach_nothing(round& r, const std::string& what, storage::io_service& node, const storage::shape_ptr& f,
                        std::uint64_t at = 0, std::uint64_t bytes = 4096) {
  const auto wanted = std::make_shared<const request>(request::contiguous(at, bytes));
  std::vector<std::byte> memory(bytes, std::byte{0x5a});
  const std::vector<std::byte> before = memory;
  for (const bool writes : {false, true}) {
    std::promise<failure> p;
    const auto done = [&](const failure& e) { p.set_value(e); };
    if (writes)
      node.write(f, 0, wanted, memory.data(), done);
    else
      node.read(f, 0, wanted, memory.data(), done);
    if (!p.get_future().get()) came_through(what + (writes ? ", a write" : ", a read"));
    if (memory != before) came_through(what + ", bytes of a read that was refused");
    ++r.counts().refused;
  }
}

std::shared_ptr<storage::file_shape> with(const storage::file_shape& f, const std::string& capability) {
  auto changed = std::make_shared<storage::file_shape>(f);
  changed->capability = std::make_shared<plain_capability>(capability);
  return changed;
}

// --- The forgers.

void wrong_key(round& r, const loot& l) {
  storage::client_identity c = identity(l, {}, r.one_in(2) ? 0 : alice_uid);
  const wire::key_ptr other = wire::access_key::random();
  c.key = r.one_in(2) ? other : other->for_user({"alice", c.who.uid, {users_group}});
  must_be_refused(r, "a key of another cluster", [&] { storage::remote_metadata m(to_metad(l, c)); });
  must_reach_nothing(r, "a key of another cluster", *to_iod(l, c), l.innocent);
}

void no_key(round& r, const loot& l) {
  const storage::client_identity c = identity(l, {}, r.one_in(2) ? 0 : alice_uid);
  must_be_refused(r, "no key", [&] { storage::remote_metadata m(to_metad(l, c)); });
  must_reach_nothing(r, "no key", *to_iod(l, c), l.innocent);
  for (const bool metadata : {true, false}) try {
      (void)testing::welcomed(metadata ? l.metad : l.iod,
                              metadata ? wire::server_role::metadata : wire::server_role::io);
      came_through("a hello without TLS");
    } catch (const finding&) {
      throw;
    } catch (const std::exception&) {
      ++r.counts().refused;
    }
}

/// An identity that somebody else was given, or that was changed, with mallory's secret.
void forged_key(round& r, const loot& l) {
  std::ifstream in(l.mallory_key);
  std::string title, version, own_identity, secret;
  in >> title >> version >> own_identity >> secret;
  std::string forged = own_identity;
  if (r.one_in(3)) {
    forged = wire::access_key::read(l.alice_key)->holder().identity;
  } else if (r.one_in(2)) {
    const auto at = forged.find(":" + std::to_string(mallory_uid) + ":");
    forged.replace(at + 1, 4, r.one_in(2) ? "0" : std::to_string(alice_uid));
  } else {  // another moment at which it was made, or another fingerprint of the cluster
    const auto at = forged.size() - r.between(1, 40);
    forged[at] = forged[at] == 'a' ? 'b' : 'a';
  }
  const std::string file = l.folder + "/forged" + std::to_string(r.dice()());
  std::ofstream(file) << title << " " << version << " " << forged << " " << secret << "\n";
  ::chmod(file.c_str(), 0600);
  wire::key_ptr key;
  try {
    key = wire::access_key::read(file);
  } catch (const error&) {
    return;  // not even an identity
  }
  storage::client_identity c = identity(l, {}, key->holder().user->uid);
  c.key = key;
  must_be_refused(r, "a forged key", [&] { storage::remote_metadata m(to_metad(l, c)); });
  must_reach_nothing(r, "a forged key", *to_iod(l, c), l.innocent);
}

/// His own key, and somebody else's name.
void claimed_user(round& r, const loot& l) {
  const storage::client_identity c = identity(l, l.mallory_key, r.one_in(2) ? 0 : alice_uid);
  must_be_refused(r, "a user's key for another user", [&] { storage::remote_metadata m(to_metad(l, c)); });
  must_reach_nothing(r, "a user's key for another user", *to_iod(l, c), l.innocent);
}

void stolen_capability(round& r, const loot& l) {
  const auto node = to_iod(l, identity(l, l.mallory_key, mallory_uid));
  must_reach_nothing(r, "another user's capability", *node, l.innocent, 4096 * r.between(0, 200));
  must_be_refused(r, "another user's file", [&] {
    storage::remote_metadata m(to_metad(l, identity(l, l.mallory_key, mallory_uid)));
    (void)m.open("innocent", r.one_in(2));
  });
}

/// His own capability, changed: for another file, more rights, more time.
void changed_capability(round& r, const loot& l) {
  const auto node = to_iod(l, identity(l, l.mallory_key, mallory_uid));
  for (std::uint64_t n = r.between(1, 10); n > 0; --n) {
    std::string bytes = l.own->capability->bytes();
    if (r.one_in(4)) {
      const std::string hers = l.innocent->capability->bytes();
      const std::size_t cut = r.between(1, bytes.size() - 1);
      bytes = r.one_in(2) ? bytes.substr(0, cut) + hers.substr(cut) : hers.substr(0, cut) + bytes.substr(cut);
      if (bytes == l.own->capability->bytes()) continue;
    } else if (r.one_in(5)) {
      bytes.resize(r.between(0, bytes.size() - 1));
    } else {
      bytes[r.between(0, bytes.size() - 1)] ^= static_cast<char>(1 << r.between(0, 7));
    }
    must_reach_nothing(r, "a changed capability", *node, with(r.one_in(2) ? *l.own : *l.innocent, bytes));
  }
}

/// His own capability with another description of the file than was signed.
void altered_geometry(round& r, const loot& l) {
  const auto node = to_iod(l, identity(l, l.mallory_key, mallory_uid));
  auto f = std::make_shared<storage::file_shape>(*l.own);
  std::uint64_t at = 0;
  switch (r.between(0, 4)) {
    case 0:
      f->size += 4096 * r.between(1, 1'000'000);
      at = l.own->size;
      break;
    case 1: f->striping.sf *= 2; break;
    case 2: f->sparse = !f->sparse; break;
    case 3: f->fill.assign(8, std::byte{1}); break;
    default: f->id = l.innocent->id;
  }
  must_reach_nothing(r, "another description of the file", *node, f, at);
}

/// Signed as the metadata server would have done: expired, for another store, or with another key.
void signed_otherwise(round& r, const loot& l) {
  const wire::key_ptr key = wire::access_key::read(l.mallory_key);
  wire::capability c;
  c.file = l.own->id;
  c.rights = 31;
  c.uid = mallory_uid;
  c.expiry = wire::seconds_now() + 3600;
  c.store_uuid = l.store_uuid;
  c.geometry = wire::geometry_of(l.own->size, l.own->striping, l.own->sparse, l.own->fill);
  c.holder = wire::mark_of(key->holder().identity);
  std::string signer = l.folder + "/store/metad/capability.key";
  switch (r.between(0, 3)) {
    case 0: c.expiry = wire::seconds_now() - static_cast<std::int64_t>(r.between(1, 100'000)); break;
    case 1: c.store_uuid[0] = c.store_uuid[0] == 'a' ? 'b' : 'a'; break;
    case 2: c.holder = wire::mark_of(wire::access_key::read(l.alice_key)->holder().identity); break;
    default: signer = l.folder + "/signer" + std::to_string(r.dice()());
  }
  const auto node = to_iod(l, identity(l, l.mallory_key, mallory_uid));
  must_reach_nothing(r, "a capability that is not good", *node, with(*l.own, wire::capability_signer(signer).sign(c)));
}

/// Somebody who has no key answers in the place of the store: with what it was sent, with noise, or
/// as a server without keys would.  Alice's client tells it nothing.
void impostor(round& r, const loot& l) {
  file_descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in a = testing::loopback("127.0.0.1:0");
  socklen_t length = sizeof a;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0 ||
      ::listen(listener.get(), 10) != 0 || ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&a), &length) != 0)
    throw std::system_error(errno, std::generic_category(), "the impostor cannot listen");
  const bool reflects = r.one_in(2);
  std::string noise(r.between(1, 300), '\0');
  for (char& c : noise) c = static_cast<char>(r.dice()());
  noise[0] = r.one_in(2) ? '\x16' : noise[0];  // as TLS begins
  std::atomic<bool> over{false};
  std::thread serving([&] {
    std::vector<file_descriptor> peers;
    while (!over) {
      pollfd p{listener.get(), POLLIN, 0};
      ::poll(&p, 1, 5);
      if (const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0)
        peers.emplace_back(fd);
      for (const file_descriptor& fd : peers) {
        char bytes[4096];
        const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
        if (n > 0) testing::send_all(fd, reflects ? std::string_view(bytes, static_cast<std::size_t>(n)) : noise);
      }
    }
  });
  try {
    loot there = l;
    there.metad = there.iod = "127.0.0.1:" + std::to_string(ntohs(a.sin_port));
    const storage::client_identity c = identity(l, l.alice_key, alice_uid);
    must_be_refused(r, "an impostor", [&] { storage::remote_metadata m(to_metad(there, c)); });
    must_reach_nothing(r, "an impostor", *to_iod(there, c), l.innocent);
  } catch (...) {
    over = true;
    serving.join();
    throw;
  }
  over = true;
  serving.join();
}

struct forger {
  const char* name;
  void (*forge)(round&, const loot&);
};
constexpr std::array forgers{forger{"a wrong key", wrong_key},
                             forger{"no key", no_key},
                             forger{"a forged key", forged_key},
                             forger{"a claimed user", claimed_user},
                             forger{"a stolen capability", stolen_capability},
                             forger{"a changed capability", changed_capability},
                             forger{"an altered geometry", altered_geometry},
                             forger{"a capability signed otherwise", signed_otherwise},
                             forger{"an impostor", impostor}};

}  // namespace

void forging_clients(round& r) {
  loot l;
  served_store servers = start_keyed(r, l, 1);

  const milliseconds attack_time(5000), calm(800);
  const auto as_alice = [&] { return store::open(l.url, {.key = l.alice_key}); };
  const pid_t innocent = r.in_child([&] {
    be_innocent(r, as_alice(), calm, attack_time);
    return 0;
  });
  std::vector<pid_t> all;
  std::string names;
  for (std::uint64_t n = r.between(2, 5); n > 0; --n) {
    const auto& [name, forge] = forgers[r.between(0, forgers.size() - 1)];
    names += std::string(names.empty() ? "" : ", ") + name;
    const std::uint64_t seed = r.dice()();
    all.push_back(r.in_child([&, forge = forge, seed] {
      round own(seed, r.folder(), r.counts());
      loot mine = l;
      mine.innocent = look_up(mine, l.alice_key, alice_uid, "innocent");
      mine.own = look_up(mine, l.mallory_key, mallory_uid, "mallory");
      testing::let_pass(calm);  // in which the innocent client measures the machine
      forge(own, mine);
      return 0;
    }));
  }
  std::cout << "forgers: " << names << std::endl;
  for (const pid_t a : all) r.wait_for(a, std::chrono::seconds(60), "a forger");
  if (const int s = r.wait_for(innocent, std::chrono::seconds(60), "the innocent client"))
    throw finding(verdict::failed, "the innocent client ended with status " + std::to_string(s) + ", beside " + names);
  for (const char* who : {"metad", "iod-0"})
    if (::kill(servers.pid(who), 0) != 0)
      throw finding(verdict::failed, std::string(who) + " has ended, attacked by " + names);
  const pid_t next = r.in_child([&] {
    const store s = as_alice();
    std::vector<std::byte> got(innocent_bytes);
    file::open(s, "innocent").read_at(0, got);
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != innocent_byte(i)) came_through("byte " + std::to_string(i) + " is another, after " + names);
    return 0;
  });
  if (const int s = r.wait_for(next, std::chrono::seconds(20), "a client after " + names))
    throw finding(verdict::failed, "a client after the attack ended with status " + std::to_string(s));
}

}  // namespace ooc::attack
