// One client of the concurrent read and write experiment: moves its own region of a file of the
// store, or as many bytes over bare sockets to the same hosts.
//
//     regions store URL FILE            client of the store
//     regions bare ADDRESS:PORT...      client of bare servers
//     regions serve ADDRESS:PORT...     a bare server; runs until its standard input ends
//
// A client prints "ready", then does what the lines of its standard input say, one after the other:
//
//     create BYTES SF          the file, all nodes, stripes of SF bytes ("store" only)
//     prepare OFFSET BYTES     all that comes before a write: opens the file, makes the data
//     clear OFFSET BYTES       all that comes before a read: room for the data, without them
//     write OFFSET BYTES AT    read OFFSET BYTES AT, neither before this time
//     check OFFSET BYTES       what was read is what a writer of these bytes has written ("store" only)
//
// and answers each with "BEGIN END", times of CLOCK_MONOTONIC in seconds, which all processes of a
// machine share.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bare_regions.hpp"
#include "clock.hpp"
#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "words.hpp"

namespace {

using papers::now;
using papers::region;

class store_client {
 public:
  store_client(const std::string& url, std::string name)
      : store_(ooc::store::open(url)), name_(std::move(name)) {}

  void create(std::uint64_t bytes, std::uint64_t sf) {
    ooc::file_options o;
    o.size = bytes;
    o.striping.sf = sf;
    file_ = ooc::file::create(store_, name_, o);
  }
  void write(const region& r, std::span<const std::byte> data) { open().write_at(r.offset, data); }
  void read(const region& r, std::span<std::byte> data) {
    if (open().read_at(r.offset, data) != r.bytes) throw std::runtime_error("the file is too short");
  }
  /// Opens the file and asks every node for its first bytes, which makes the connections.  Twice:
  /// the first answer may have waited for a thread, and the system takes the shortest time that it
  /// has seen an answer take for the network's.
  void prepare() {
    const ooc::striping s = open().striping();
    std::uint64_t word = 0;
    for (int time = 0; time < 2; ++time)
      for (std::uint64_t stripe = 0; stripe < s.nn; ++stripe)
        read({stripe * s.sf, sizeof word}, std::as_writable_bytes(std::span(&word, 1)));
  }

 private:
  ooc::file& open() {
    if (!file_) file_ = ooc::file::open(store_, name_, ooc::file_access::read_write);
    return *file_;
  }

  ooc::store store_;
  std::string name_;
  std::optional<ooc::file> file_;
};

region parse_region(std::istringstream& in) {
  region r;
  if (!(in >> r.offset >> r.bytes) || r.offset % 8 || r.bytes % 8 || r.bytes == 0)
    throw std::runtime_error("give OFFSET and BYTES, multiples of 8");
  return r;
}

void require_room(const std::vector<std::uint64_t>& memory, const region& r) {
  if (memory.size() * 8 != r.bytes)
    throw std::runtime_error("prepare comes before write, clear before read");
}

/// When the transfer begins: at the time that the order gives, so that all clients begin together.
double begin_at(std::istringstream& in) {
  double at = 0;
  if (!(in >> at)) throw std::runtime_error("give the time when to begin");
  while (now() < at) std::this_thread::sleep_for(std::chrono::duration<double>(at - now()));
  return now();
}

/// Serves the lines of standard input; `checked` where what is read was written before.
template <class Client>
void serve(Client& client, bool checked) {
  std::cout << "ready" << std::endl;
  std::vector<std::uint64_t> memory;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string what;
    in >> what;
    double begin = 0;
    double end = 0;
    if (what == "create") {
      std::uint64_t bytes = 0;
      std::uint64_t sf = 0;
      in >> bytes >> sf;
      begin = now();
      client.create(bytes, sf);
      end = now();
    } else if (what == "prepare") {
      const region r = parse_region(in);
      memory.resize(r.bytes / 8);
      papers::fill(r.offset, memory);
      client.prepare();
    } else if (what == "clear") {
      memory.assign(parse_region(in).bytes / 8, 0);
    } else if (what == "write") {
      const region r = parse_region(in);
      require_room(memory, r);
      begin = begin_at(in);
      client.write(r, std::as_bytes(std::span(memory)));
      end = now();
    } else if (what == "read") {
      const region r = parse_region(in);
      require_room(memory, r);
      begin = begin_at(in);
      client.read(r, std::as_writable_bytes(std::span(memory)));
      end = now();
    } else if (what == "check") {
      const region r = parse_region(in);
      require_room(memory, r);
      if (checked) papers::check(r.offset, memory);
    } else {
      throw std::runtime_error("no such order: " + line);
    }
    std::printf("%.6f %.6f\n", begin, end);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "store") {
      store_client client(words[1], words[2]);
      serve(client, true);
    } else if (words.size() >= 2 && words[0] == "bare") {
      papers::bare_client client({words.begin() + 1, words.end()});
      serve(client, false);
    } else if (words.size() >= 2 && words[0] == "serve") {
      papers::bare_serve({words.begin() + 1, words.end()});
    } else {
      std::fprintf(stderr, "regions: see the head of regions.cpp for its arguments\n");
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "regions: %s\n", e.what());
    return 1;
  }
}
