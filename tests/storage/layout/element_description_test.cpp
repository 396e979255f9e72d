#include "storage/layout/element_description.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <sstream>
#include <string>

#include "oocarray/error.hpp"
#include "storage/layout/npy.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;

TEST_CASE("a description is read and written as Python writes it") {
  for (const std::string text :
       {"'<f8'", "'|b1'", "'|S4'", "'<U3'", "'<M8[ns]'", "'<m8[25us]'", "'|V7'", "'<c32'",
        "[('x', '<f4'), ('y', '<i4')]", "[('pos', '<f8', (3,)), ('m', '<f4', (2, 2)), ('', '|V4')]",
        "[('in', [('a', '>i2'), ('b', '<M8')])]",
        R"([(('title', 'x'), '<f4'), ("it's", '|u1'), ('back\\slash', '|u1')])", "[('\xc3\xa4', '<f4')]"})
    CHECK(description_of(text).text() == text);
  CHECK(description_of(R"([('\xe4', '<f4')])").text() == "[('\xc3\xa4', '<f4')]");
}

TEST_CASE("what an array records: a name where there is one, else bytes and the description") {
  const auto is = [](const char* text) { return recorded(description_of(text)); };
  CHECK(is("'<f8'").name == "f8");
  CHECK(is("'<f8'").description.empty());
  CHECK(is("'<f16'").name == "f16");
  CHECK(is("'|V7'").name == "struct7");
  CHECK(is("'|V7'").description.empty());
  CHECK(is("'>f8'").name == "struct8");
  CHECK(is("'>f8'").description == "'>f8'");
  CHECK(is("'<U3'").size == 12);
  CHECK(is("[('x', '<f4'), ('pos', '<u2', (3,))]").name == "struct10");
  CHECK(is("'<M8[ns]'").description == "'<M8[ns]'");
  CHECK(description_named("struct24").text() == "'|V24'");
}

TEST_CASE("what no element can be is refused") {
  for (const char* text :
       {"", "'", "'<f3'", "'|O'", "'|T16'", "'|S0'", "'<U20000'", "'struct8'", "[]", "[('x',)]", "[('x', '|O')]",
        "[('x', '<f8', (100000,))]", "('<f8', (3,))", "'<f8' junk", "[('x', '<f8'", "'<M8[ns'", "nonsense"})
    CHECK_THROWS_AS(description_of(text), no_element);
  CHECK_THROWS_AS(description_of(std::string(5000, '[')), no_element);
  std::string deep = "'<f8'";
  for (int i = 0; i < 200; ++i) deep = "[('a', " + deep + ")]";
  CHECK_THROWS_AS(description_of(deep), no_element);
}

TEST_CASE("a .npy header has the description, and says which bytes stand in the other order") {
  const auto read = [](const std::string& text) {
    std::istringstream in(text);
    return read_npy_header(in, "x");
  };
  for (const std::string text : {"[('x', '<f4'), ('y', '>i4')]", "'<M8[ns]'", "[('\xc3\xa4', '<f4')]"}) {
    const npy_header h = read(format_npy_header("struct8", {2, 3}, text));
    CHECK(h.description == text);
    CHECK(h.shape == std::vector<std::uint64_t>{2, 3});
    CHECK(h.swap_unit == 0);
  }
  CHECK(read(format_npy_header("struct8", {2}, "'>f8'")).swap_unit == 8);
  CHECK(read(format_npy_header("struct8", {2}, "'>f8'")).element_type == "f8");
  CHECK(read(format_npy_header("struct8", {2}, "'>c8'")).swap_unit == 4);
  CHECK(read(format_npy_header("struct12", {2}, "'>U3'")).description == "'<U3'");
}

TEST_CASE("damaged descriptions are refused and nothing worse") {
  std::mt19937_64 random(ooc::testing::random_seed("element descriptions"));
  const std::string good = R"([('x', '<f4'), (('t', "y"), '>M8[ns]', (2, 3)), ('in', [('\xe4', '|S4')])])";
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (std::uint64_t n = 0; n <= random() % 4; ++n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random());
      else
        text.insert(at, 1, "[]()',\\0198<fM "[random() % 15]);
    }
    try {
      const element_description d = description_of(text);
      CHECK(description_of(d.text()).text() == d.text());
    } catch (const no_element&) {
    }
  }
}
