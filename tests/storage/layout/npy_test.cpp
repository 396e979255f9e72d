#include "storage/layout/npy.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <sstream>

#include "oocarray/error.hpp"
#include "storage/layout/element_type.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;

TEST_CASE("a header comes back as it was written, on a multiple of 64 bytes") {
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{},
                                                  {7},
                                                  {0},
                                                  {3, 4},
                                                  {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                                                  std::vector<std::uint64_t>(12000, 1)}) {
    const std::string text = format_npy_header("c16", shape);
    CHECK(text.size() % 64 == 0);
    CHECK(text.back() == '\n');
    std::istringstream in(text + "data");
    const npy_header h = read_npy_header(in, "x");
    CHECK(h.element_type == "c16");
    CHECK(h.element_size == 16);
    CHECK(h.shape == shape);
    CHECK_FALSE(h.fortran_order);
    CHECK(h.data_offset == text.size());
    std::string rest;
    in >> rest;
    CHECK(rest == "data");
  }
}

TEST_CASE("the header is the one that NumPy writes") {
  CHECK(format_npy_header("f8", {3, 4}) == std::string("\x93NUMPY\x01\x00v\x00", 10) +
                                               "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }" +
                                               std::string(58, ' ') + "\n");
}

TEST_CASE("sizes of element types") {
  CHECK(element_size("f8") == 8);
  CHECK(element_size("c8") == 8);
  CHECK(element_size("u1") == 1);
  CHECK(element_size("b1") == 1);
  CHECK(element_size("f2") == 2);
  CHECK(element_size("f16") == 16);
  CHECK(element_size("c32") == 32);
  CHECK(element_size("struct24") == 24);
  for (const char* bad : {"", "f", "f3", "f32", "c4", "i3", "u16", "x8", "struct", "struct0", "struct08", "struct99999",
                          "f8 ", "f-8", "f08", "8"})
    CHECK(element_size(bad) == 0);
}

TEST_CASE("bool and float16 keep their names in .npy files") {
  for (const std::string type : {"b1", "f2"}) {
    std::istringstream in(format_npy_header(type, {3}));
    CHECK(read_npy_header(in, "x").element_type == type);
  }
}

TEST_CASE("damaged headers are refused and nothing worse") {
  const std::uint64_t seed = ooc::testing::random_seed("npy");
  std::mt19937_64 random(seed);
  const std::string good = format_npy_header("f8", {300, 500, 7});
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (std::uint64_t n = 0; n <= random() % 4 && !text.empty(); ++n) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, 1 + random() % 5); break;
        case 2: text.insert(at, 1 + random() % 3, "{}()',:0198 "[random() % 12]); break;
        default: text.resize(at + 1);
      }
    }
    std::istringstream in(text);
    try {
      const npy_header h = read_npy_header(in, "x");
      if (h.element_size == 0 || element_size(h.element_type) != h.element_size)
        FAIL("seed " << seed << " round " << round);
    } catch (const usage_error&) {
    }
  }
}
