// Tests of the ranges of a file that have changed on its nodes.
#include "storage/service/changed_bytes.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/random_seed.hpp"
#include "support/random_source.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

TEST_CASE("the changed bytes of a file are those that have changed on its nodes, each once and in order") {
  std::mt19937_64 random(random_seed("changed_bytes"));
  for (int round = 0; round < 200; ++round) {
    const striping s{0, static_cast<std::uint32_t>(between(random, 1, 4)), between(random, 1, 40)};
    const std::uint64_t size = between(random, 1, 2000), most = between(random, 1, 300);
    CAPTURE(s.nn, s.sf, size, most);
    std::vector<bool> changed(size);
    std::vector<std::vector<byte_interval>> on_nodes(s.nn);
    for (std::uint32_t t = 0; t < s.nn; ++t) {
      const std::uint64_t end = s.object_size(t, size);
      for (std::uint64_t at = between(random, 0, 100); at < end;) {
        const byte_interval r{at, std::min(end, at + between(random, 1, 100))};
        on_nodes[t].push_back(r);
        for (std::uint64_t o = r.begin; o < r.end; ++o) changed[s.file_offset(t, o)] = true;
        at = r.end + between(random, 1, 200);
      }
    }
    const changed_bytes all(s, size, on_nodes);
    std::uint64_t at = 0;
    for (auto r = all.next(0, most); r; r = all.next(at, most)) {
      REQUIRE((r->begin >= at && r->end > r->begin && r->end <= size && r->end - r->begin <= most));
      CHECK(std::none_of(changed.begin() + static_cast<std::ptrdiff_t>(at),
                         changed.begin() + static_cast<std::ptrdiff_t>(r->begin), [](bool b) { return b; }));
      CHECK(std::all_of(changed.begin() + static_cast<std::ptrdiff_t>(r->begin),
                        changed.begin() + static_cast<std::ptrdiff_t>(r->end), [](bool b) { return b; }));
      const bool goes_on = r->end < size && changed[r->end];
      CHECK((!goes_on || r->end - r->begin == most));
      at = r->end;
    }
    CHECK(std::none_of(changed.begin() + static_cast<std::ptrdiff_t>(at), changed.end(), [](bool b) { return b; }));
  }
}
