// One file transfer of the Beowulf experiment, and what comes before it.
//
//     transfers make FILE BYTES PLACE                 writes a file on this host's disk
//     transfers upload URL FILE BYTES PLACE NODE      writes a file of the store, on one node
//     transfers serve FILE ADDRESS:PORT...            a bare server, until standard input ends
//     transfers local FILE TARGET PLACE               copies from this host's disk,
//     transfers store URL FILE TARGET PLACE           ... from the store,
//     transfers bare TARGET PLACE ADDRESS:PORT...     ... from a bare server,
//
// to TARGET on this host's disk.  PLACE, a multiple of 8, stands for the file's contents: other
// files have others.  The last three print "ready", then do what the lines of standard input say:
//
//     copy BYTES                         copies the first BYTES of the file; answers "BEGIN END",
//                                        seconds of CLOCK_MONOTONIC
//     check BYTES                        compares TARGET with what the file holds; answers "0"
//     read BYTES BEGIN SECONDS SLOTS     reads the first BYTES again and again, and compares;
//                                        answers with the reads a second in each of SLOTS slots of
//                                        SECONDS from BEGIN on
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <future>
#include <iostream>
#include <sstream>
#include <system_error>

#include "clock.hpp"
#include "oocarray/file.hpp"
#include "sources.hpp"
#include "token.hpp"
#include "words.hpp"

namespace {

using papers::source;
using words = std::vector<std::uint64_t>;

constexpr unsigned patience = 300;  ///< seconds for one order
constexpr std::size_t ahead = 2;    ///< chunks asked for before the first is written

class output {
 public:
  explicit output(const std::string& path) : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
  }
  ~output() { ::close(fd_); }
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const ssize_t n = ::write(fd_, data.data(), data.size());
      if (n < 0) throw std::system_error(errno, std::generic_category(), "write");
      data = data.subspan(static_cast<std::size_t>(n));
    }
  }

 private:
  int fd_;
};

/// Calls f(offset, bytes) for every chunk of a file.
template <class F>
void in_chunks(std::uint64_t bytes, F&& f) {
  for (std::uint64_t o = 0; o < bytes; o += source::chunk)
    f(o, static_cast<std::size_t>(std::min<std::uint64_t>(source::chunk, bytes - o)));
}

void copy(source& from, const std::string& target, std::uint64_t bytes) {
  output to(target);
  std::deque<std::future<std::vector<std::byte>>> coming;
  const auto write_first = [&] {
    to.write(coming.front().get());
    coming.pop_front();
  };
  in_chunks(bytes, [&](std::uint64_t offset, std::size_t n) {
    if (coming.size() == ahead) write_first();
    coming.push_back(std::async(std::launch::async, [&from, offset, n] {
      std::vector<std::byte> memory(n);
      from.read(offset, memory);
      return memory;
    }));
  });
  while (!coming.empty()) write_first();
}

/// Reads and compares; `memory` is for the data.
void read_and_check(source& from, std::uint64_t place, std::uint64_t offset, words& memory) {
  from.read(offset, std::as_writable_bytes(std::span(memory)));
  papers::check(place + offset, memory);
}

void check(const std::string& target, std::uint64_t place, std::uint64_t bytes) {
  const auto copied = papers::local_source(target);
  in_chunks(bytes, [&](std::uint64_t offset, std::size_t n) {
    words memory(n / 8);
    read_and_check(*copied, place, offset, memory);
  });
}

void read_again(source& from, std::uint64_t place, std::uint64_t bytes, std::istringstream& order) {
  double begin = 0;
  double seconds = 0;
  std::size_t slots = 0;
  if (!(order >> begin >> seconds >> slots)) throw std::runtime_error("read: four numbers");
  words memory(bytes / 8);
  papers::meter meter(papers::now(), begin, seconds, slots);
  for (double now = 0; !meter.over(now);) {
    read_and_check(from, place, 0, memory);
    now = papers::now();
    meter.tick(now);
  }
  for (const double rate : meter.rates()) std::printf("%.6g ", rate);
}

void serve_orders(source& from, const std::string& target, std::uint64_t place) {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream order(line);
    std::string what;
    std::uint64_t bytes = 0;
    if (!(order >> what >> bytes) || bytes == 0 || bytes % 8)
      throw std::runtime_error("give BYTES, a multiple of 8: " + line);
    papers::end_in(patience);
    if (what == "copy") {
      const double begin = papers::now();
      copy(from, target, bytes);
      std::printf("%.6f %.6f", begin, papers::now());
    } else if (what == "check") {
      check(target, place, bytes);
      std::printf("0");
    } else if (what == "read") {
      read_again(from, place, bytes, order);
    } else {
      throw std::runtime_error("no such order: " + line);
    }
    papers::end_in(0);
    std::printf("\n");
    std::fflush(stdout);
  }
}

/// Hands the contents of a new file to f(offset, data) in chunks.
template <class F>
void produce(std::uint64_t bytes, std::uint64_t place, F&& f) {
  in_chunks(bytes, [&](std::uint64_t offset, std::size_t n) {
    words memory(n / 8);
    papers::fill(place + offset, memory);
    f(offset, std::as_bytes(std::span(memory)));
  });
}

void make(const std::string& path, std::uint64_t bytes, std::uint64_t place) {
  output file(path);
  produce(bytes, place, [&](std::uint64_t, auto data) { file.write(data); });
}

void upload(const std::string& url, const std::string& path, std::uint64_t bytes, std::uint64_t place,
            std::uint32_t node) {
  const auto store = ooc::store::open(url);
  ooc::file_options o;
  o.size = bytes;
  o.striping = {node, 1, 64 * 1024};
  auto file = ooc::file::create(store, path, o);
  produce(bytes, place, [&](std::uint64_t offset, auto data) { file.write_at(offset, data); });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> w(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) { return std::stoull(w[i]); };
  const std::string what = w.empty() ? "" : w[0];
  try {
    if (what == "make" && w.size() == 4)
      make(w[1], number(2), number(3));
    else if (what == "upload" && w.size() == 6)
      upload(w[1], w[2], number(3), number(4), static_cast<std::uint32_t>(number(5)));
    else if (what == "serve" && w.size() > 2)
      papers::serve_file(w[1], {w.begin() + 2, w.end()});
    else if (what == "local" && w.size() == 4)
      serve_orders(*papers::local_source(w[1]), w[2], number(3));
    else if (what == "store" && w.size() == 5)
      serve_orders(*papers::store_source(w[1], w[2]), w[3], number(4));
    else if (what == "bare" && w.size() > 3)
      serve_orders(*papers::bare_source({w.begin() + 3, w.end()}), w[1], number(2));
    else {
      std::fprintf(stderr, "transfers: see the head of transfers.cpp for its arguments\n");
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "transfers: %s\n", e.what());
    return 1;
  }
}
