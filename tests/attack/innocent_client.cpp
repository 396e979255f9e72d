#include "attack/innocent_client.hpp"

#include <algorithm>
#include <iostream>
#include <optional>
#include <vector>

#include "oocarray/file.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

using clock = std::chrono::steady_clock;

constexpr const char* file_name = "innocent";
constexpr std::uint64_t read_limit_us = 1'000'000, lookup_limit_us = 500'000;

template <class F>
std::uint64_t microseconds_of(F&& f) {
  const auto begun = clock::now();
  f();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(clock::now() - begun).count());
}

}  // namespace

void make_innocent_file(const store& s) {
  file f = file::create(s, file_name, {.size = innocent_bytes});
  std::vector<std::byte> all(innocent_bytes);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = innocent_byte(i);
  f.write_at(0, all);
}

slowest read_innocently(round& r, const store& s, clock::time_point until) {
  slowest most;
  std::vector<std::byte> got(4096);
  while (clock::now() < until) {
    std::optional<file> f;
    most.lookup_us = std::max(most.lookup_us, microseconds_of([&] { f.emplace(file::open(s, file_name)); }));
    const std::size_t at = r.between(0, innocent_bytes - got.size());
    most.read_us = std::max(most.read_us, microseconds_of([&] { f->read_at(at, got); }));
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != innocent_byte(at + i)) throw finding(verdict::wrong, "the innocent client read wrong bytes");
    ++r.counts().operations;
    testing::let_pass(std::chrono::milliseconds(2));  // it is not greedy itself
  }
  return most;
}

void be_innocent(round& r, const store& s, std::chrono::milliseconds calm, std::chrono::milliseconds attack) {
  const slowest before = read_innocently(r, s, clock::now() + calm);
  const slowest during = read_innocently(r, s, clock::now() + attack);
  std::cout << "slowest before: read " << before.read_us << " us, look-up " << before.lookup_us
            << " us; during: " << during.read_us << ", " << during.lookup_us << std::endl;
  raise_to(r.counts().slowest_read_us, during.read_us);
  raise_to(r.counts().slowest_lookup_us, during.lookup_us);
  if (during.read_us > read_limit_us + 3 * before.read_us || during.lookup_us > lookup_limit_us + 3 * before.lookup_us)
    throw finding(verdict::slow, "the innocent client waited " + std::to_string(during.read_us / 1000) +
                                     " ms for 4 KiB and " + std::to_string(during.lookup_us / 1000) +
                                     " ms for a look-up (before the attack " + std::to_string(before.read_us / 1000) +
                                     " and " + std::to_string(before.lookup_us / 1000) + ")");
}

}  // namespace ooc::attack
