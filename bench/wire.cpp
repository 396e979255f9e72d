// The cost of encryption: the same served store with keys, encrypted and not, beside bare sockets, on
// loopback and on a link of 1 Gbit/s between two network name spaces.
//
//     PATH_plain_WAY_over_bare         throughput without encryption / of bare sockets
//     PATH_encrypted_WAY_over_plain    throughput with encryption / without
//     PATH_..._mib_per_s               each by itself
//
// PATH is loopback or gigabit, WAY is read or write.  All that runs is on the first two processors
// that this program may use.  Without root there is no link: `gigabit` says why.
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/bare_sockets.hpp"
#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/shaped_link.hpp"
#include "measure/transfers.hpp"
#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/wire/access_key.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using host = shaped_link::host;

constexpr std::uint64_t file_bytes = 128_MiB;
constexpr unsigned requests_in_flight = 4;

class two_processors {
 public:
  two_processors() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++c)
      if (CPU_ISSET(c, &before_)) CPU_SET(c, &two);
    ::sched_setaffinity(0, sizeof two, &two);
  }
  ~two_processors() { ::sched_setaffinity(0, sizeof before_, &before_); }
  two_processors(const two_processors&) = delete;
  two_processors& operator=(const two_processors&) = delete;

 private:
  cpu_set_t before_;
};

/// Two stores with the same key at the ends of one path, and what is measured there.
class wire_path {
 public:
  /// `link` empty: on loopback.
  wire_path(const options& o, std::string name, unsigned nodes, unsigned times, const shaped_link* link)
      : nodes_(nodes), times_(times), link_(link), key_((o.dir / (name + "-key")).string()) {
    ooc::wire::access_key::random()->write(key_);
    const std::string address = link ? link->server_address() : "127.0.0.1";
    enter(host::server);
    plain_.emplace(o.dir / (name + "-plain"), nodes, key_, false, address);
    encrypted_.emplace(o.dir / (name + "-encrypted"), nodes, key_, true, address);
    enter(host::home);
    for (const served_store* s : {&*plain_, &*encrypted_}) make_file(*s);
    for (const char* way : {"read", "write"}) {
      plain_over_bare_.emplace_back(name + "_plain_" + way + "_over_bare");
      encrypted_over_plain_.emplace_back(name + "_encrypted_" + way + "_over_plain");
      bare_speed_.emplace_back(name + "_bare_" + way + "_mib_per_s");
      plain_speed_.emplace_back(name + "_plain_" + way + "_mib_per_s");
      encrypted_speed_.emplace_back(name + "_encrypted_" + way + "_mib_per_s");
    }
  }

  void round() {
    const double mib = static_cast<double>(times_ * file_bytes) / (1 << 20);
    for (const transfer what : {transfer::read, transfer::write}) {
      const std::size_t k = what == transfer::write;
      const double bare = bare_seconds(what), plain = seconds(*plain_, what), encrypted = seconds(*encrypted_, what);
      plain_over_bare_[k].add(bare, plain);
      encrypted_over_plain_[k].add(plain, encrypted);
      bare_speed_[k].add(mib, bare);
      plain_speed_[k].add(mib, plain);
      encrypted_speed_[k].add(mib, encrypted);
    }
  }

  void put(json& out) const {
    for (const auto* all : {&plain_over_bare_, &encrypted_over_plain_, &bare_speed_, &plain_speed_, &encrypted_speed_})
      for (const paired_ratio& r : *all) r.put(out);
  }

 private:
  void enter(host h) const {
    if (link_) link_->enter(h);
  }

  /// Runs `work(store)` in a process of its own, at the client's end.
  template <class Work>
  json client(const served_store& s, Work&& work) const {
    return in_child(0, [&] {
      enter(host::client);
      ooc::store_options o;
      o.create = false;
      o.key = key_;
      return work(ooc::store::open(s.url(), o));
    });
  }

  std::size_t slot() const { return nodes_ * 1_MiB; }

  void make_file(const served_store& s) const {
    client(s, [&](const ooc::store& store) {
      std::vector<std::byte> memory(file_bytes);
      ooc::storage::new_file f;
      f.size = file_bytes;
      f.striping.sf = 1_MiB;
      const auto made = store.core()->create("stream", f).file;
      transfer_seconds(*made, transfer::write, contiguous_requests(file_bytes, slot()), memory, slot(),
                       requests_in_flight);
      return json::object();
    });
  }

  double seconds(const served_store& s, transfer what) const {
    return client(s, [&](const ooc::store& store) {
      std::vector<std::byte> memory(file_bytes);
      const auto f = store.core()->open("stream", ooc::storage::open_mode::read_write).file;
      const auto all = contiguous_requests(file_bytes, slot());
      // The connections are made at the first use.
      transfer_seconds(*f, what, std::span(all).first(requests_in_flight), memory, slot(), requests_in_flight);
      double sum = 0;
      for (unsigned t = 0; t < times_; ++t) sum += transfer_seconds(*f, what, all, memory, slot(), requests_in_flight);
      return json{{"seconds", sum}};
    })["seconds"];
  }

  /// The better of the two ways to move it.
  double bare_seconds(transfer what) const {
    const auto run = [&](bare::movers who) -> double {
      return in_child(0, [&] {
        std::vector<std::byte> memory(file_bytes);
        return json{{"seconds", bare::carry_seconds(what == transfer::read ? bare::way::in : bare::way::out, who,
                                                    nodes_, memory, times_, link_)}};
      })["seconds"];
    };
    return std::min(run(bare::movers::thread_each), run(bare::movers::one_thread));
  }

  unsigned nodes_, times_;
  const shaped_link* link_;
  std::string key_;
  std::optional<served_store> plain_, encrypted_;
  std::vector<paired_ratio> plain_over_bare_, encrypted_over_plain_;
  std::vector<paired_ratio> bare_speed_, plain_speed_, encrypted_speed_;
};

}  // namespace

json run_wire(const options& o) {
  require_space(o.dir, 4 * file_bytes + 64_MiB);
  const two_processors both_ends;
  const unsigned nodes = o.nodes ? o.nodes : 4;
  json out{{"nodes", nodes}};
  std::optional<shaped_link> link;
  try {
    link.emplace(1000);
  } catch (const std::exception& e) {
    out["gigabit"] = e.what();
  }
  wire_path loopback(o, "loopback", nodes, 4, nullptr);
  std::optional<wire_path> gigabit;
  if (link) gigabit.emplace(o, "gigabit", nodes, 1, &*link);
  for (unsigned r = o.rounds_or(5); r != 0; --r) {
    loopback.round();
    if (gigabit) gigabit->round();
  }
  loopback.put(out);
  if (gigabit) gigabit->put(out);
  return out;
}

}  // namespace bench
