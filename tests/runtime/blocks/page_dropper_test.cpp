// Pages that are given back together, by lists where the kernel takes them.
#include "runtime/blocks/page_dropper.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "runtime/blocks/sys.hpp"
#include "storage/base/page.hpp"

using namespace ooc::detail;
using ooc::page_bytes;

TEST_CASE("pages that are dropped read as zeros, and those between them stay") {
  constexpr std::size_t pages = 2 * page_dropper::most_together;
  std::byte* const memory = sys::map(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, sys::reserve_flags);
  REQUIRE(memory != nullptr);
  std::memset(memory, 7, pages * page_bytes);
  const page_dropper dropper;
  std::vector<std::byte*> odd;
  for (std::size_t i = 1; i < pages; i += 2) odd.push_back(memory + i * page_bytes);
  REQUIRE(dropper.drop(odd, page_bytes));
  for (std::size_t i = 0; i < pages; ++i) REQUIRE(memory[i * page_bytes] == std::byte(i % 2 ? 0 : 7));
  CHECK(dropper.drop({}, page_bytes));
  CHECK(dropper.drop({odd.data(), 1}, page_bytes));  // once more
  sys::unmap(memory, pages * page_bytes);
}
