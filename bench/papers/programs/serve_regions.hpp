// What a client of the concurrent read and write experiment does for the lines of its standard input, whatever it moves
// the regions by.  Prints "ready", then answers each line with "BEGIN END", times of CLOCK_MONOTONIC in seconds, which
// all processes of a machine share:
//
//     create BYTES SF          the file, all nodes, stripes of SF bytes
//     prepare OFFSET BYTES     all that comes before a write: opens the file, makes the data
//     clear OFFSET BYTES       all that comes before a read: room for the data, without them
//     write OFFSET BYTES AT    read OFFSET BYTES AT, neither before this time
//     check OFFSET BYTES       what was read is what a writer of these bytes has written (nothing where !checked)
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bare_regions.hpp"
#include "clock.hpp"
#include "words.hpp"

namespace papers {

inline region parse_region(std::istringstream& in) {
  region r;
  if (!(in >> r.offset >> r.bytes) || r.offset % 8 || r.bytes % 8 || r.bytes == 0)
    throw std::runtime_error("give OFFSET and BYTES, multiples of 8");
  return r;
}

inline void require_room(const std::vector<std::uint64_t>& memory, const region& r) {
  if (memory.size() * 8 != r.bytes) throw std::runtime_error("prepare comes before write, clear before read");
}

/// When the transfer begins: at the time that the order gives, so that all clients begin together.
inline double begin_at(std::istringstream& in) {
  double at = 0;
  if (!(in >> at)) throw std::runtime_error("give the time when to begin");
  while (now() < at) std::this_thread::sleep_for(std::chrono::duration<double>(at - now()));
  return now();
}

/// Serves the lines of standard input; `checked` where what is read was written before.
template <class Client>
void serve_regions(Client& client, bool checked) {
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
      fill(r.offset, memory);
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
      if (checked) check(r.offset, memory);
    } else {
      throw std::runtime_error("no such order: " + line);
    }
    std::printf("%.6f %.6f\n", begin, end);
    std::fflush(stdout);
  }
}

}  // namespace papers
