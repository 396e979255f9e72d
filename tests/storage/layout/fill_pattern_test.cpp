#include "storage/layout/fill_pattern.hpp"

#include <catch2/catch.hpp>

using namespace ooc::storage;

TEST_CASE("the fill pattern keeps its phase in the file whatever the stripes") {
  for (std::size_t element : {1, 3, 8, 24, 5000})
    for (std::uint64_t sf : {1, 7, 512, 8000})
      for (std::uint32_t nn : {1, 3}) {
        file_shape f;
        f.striping = {0, nn, sf};
        for (std::size_t i = 0; i < element; ++i) f.fill.push_back(static_cast<std::byte>(i * 7 + 1));
        for (std::uint32_t stripe_index = 0; stripe_index < nn; ++stripe_index) {
          std::vector<std::byte> out(3001);
          fill_object_bytes(f, stripe_index, 777, out);
          for (std::size_t i = 0; i < out.size(); ++i)
            REQUIRE(out[i] == f.fill[f.striping.file_offset(stripe_index, 777 + i) % element]);
        }
      }
}

TEST_CASE("without a pattern, bytes that were never written are zero") {
  file_shape f;
  f.striping = {0, 1, 4096};
  std::vector<std::byte> out(100, std::byte{1});
  fill_object_bytes(f, 0, 0, out);
  CHECK(out == std::vector<std::byte>(100));
}
