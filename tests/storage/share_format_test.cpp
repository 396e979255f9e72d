// docs/disk-format.md and the code say the same.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "storage/node_fixture.hpp"
#include "storage/undo_journal.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

std::string contents(const fs::path& file) {
  std::ifstream s(file, std::ios::binary);
  REQUIRE(s);
  return {std::istreambuf_iterator<char>(s), {}};
}

// The document's hexadecimal dump of the worked example: offset -> byte.
std::map<std::size_t, unsigned char> documented_bytes() {
  std::istringstream document(contents(OOC_DISK_FORMAT_DOCUMENT));
  std::map<std::size_t, unsigned char> out;
  std::string line;
  while (std::getline(document, line) && line.find("After a sync they are") == std::string::npos) {
  }
  std::getline(document, line);
  std::getline(document, line);
  while (std::getline(document, line) && line != "```") {
    std::istringstream words(line);
    std::size_t at = 0;
    unsigned value = 0;
    words >> std::hex >> at;
    while (words >> value) out[at++] = static_cast<unsigned char>(value);
  }
  return out;
}

}  // namespace

TEST_CASE("the worked example of docs/disk-format.md is what a node writes") {
  temporary_folder folder;
  const shape_ptr f = make_shape(10, {0, 2, 4096}, 9000, false, {std::byte{'a'}, std::byte{'b'}});
  auto node = open_local_node(folder.path());
  REQUIRE_FALSE(create(*node, f, 1));
  const char* word = "oocarray";
  REQUIRE_FALSE(
      write(*node, f, 1, request::contiguous(4100, 8), reinterpret_cast<const std::byte*>(word)));
  const fs::path files = folder.path() / "shares" / "0a";
  CHECK(contents(files / "000000000000000a.sum").substr(24, 16) ==
        std::string(reinterpret_cast<const char*>(this_boot().data()), 16));
  REQUIRE_FALSE(sync(*node, f, 1));

  std::string data = "abab";
  data += word;
  while (data.size() < 4096) data += "ab";
  CHECK(contents(files / "000000000000000a.data") == data);

  std::string sums(4104, '\0');
  const auto documented = documented_bytes();
  REQUIRE(documented.size() == 4 * 16 + 8);
  for (const auto& [at, value] : documented) sums.at(at) = static_cast<char>(value);
  const std::string found = contents(files / "000000000000000a.sum");
  REQUIRE(found.size() == sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CAPTURE(i);
    REQUIRE(static_cast<unsigned char>(found[i]) == static_cast<unsigned char>(sums[i]));
  }
}

TEST_CASE("the checksum is CRC32C as published") {
  // RFC 3720, appendix B.4.
  const bytes zeros(32, std::byte{0});
  const bytes ones(32, std::byte{0xff});
  CHECK(crc32c(zeros.data(), zeros.size()) == 0x8a9136aa);
  CHECK(crc32c(ones.data(), ones.size()) == 0x62a8ab43);
  CHECK(crc32c("123456789", 9) == 0xe3069283);
}

TEST_CASE("what an entry says of a chunk") {
  CHECK(judge({0, 0}, 5) == verdict::fill);
  CHECK(judge({5, 5}, 5) == verdict::good);
  CHECK(judge({5, 6}, 5) == verdict::good);
  CHECK(judge({5, 6}, 6) == verdict::good);
  CHECK(judge({0, 6}, 6) == verdict::good);
  CHECK(judge({0, 6}, 7) == verdict::fill);
  CHECK(judge({5, 5}, 7) == verdict::corrupt);
  CHECK(judge({5, 6}, 7) == verdict::torn);
}

TEST_CASE("an undo record lies as documented") {
  CHECK(offsetof(undo_record, crc) == 4);
  CHECK(offsetof(undo_record, chunk) == 8);
  CHECK(offsetof(undo_record, syncs) == 16);
  CHECK(offsetof(undo_record, sum) == 24);
  CHECK(offsetof(undo_record, image) == 32);
  const undo_record r;
  CHECK(std::memcmp(&r, "OOCU", 4) == 0);
}
