#include "oocarray/detail/chunk_memory.hpp"

#include <catch2/catch.hpp>

#include "oocarray/error.hpp"
#include "oocarray/units.hpp"

using namespace ooc;
using namespace ooc::literals;

TEST_CASE("a chunk that does not fit in memory is refused by name, with its size, the limit and the remedy") {
  const detail::chunk_needs chunk{"'a.h5': dataset 't'", "512x512", 2_MiB, 4_MiB, "rewrite it in smaller ones"};
  CHECK_NOTHROW(detail::check_chunk_memory(chunk, {4_MiB, "of --memory"}));
  CHECK_THROWS_WITH(
      detail::check_chunk_memory(chunk, {3_MiB, "of --memory"}),
      Catch::StartsWith("'a.h5': dataset 't' has chunks of 512x512, 2097152 bytes, which are in memory whole; that "
                        "takes 4194304 bytes of memory, of 3145728 of --memory: rewrite it in smaller ones"));
}

TEST_CASE("some memory is available, and somebody's") {
  const detail::memory_limit limit = detail::available_memory();
  CHECK(limit.bytes > 1_MiB);
  CHECK(!limit.whose.empty());
}
