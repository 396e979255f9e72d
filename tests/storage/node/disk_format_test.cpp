// docs/disk-format.md and the code say the same.
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "storage/object/undo_journal.hpp"
#include "support/node_fixture.hpp"

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
  const shape_ptr f = [] {
    auto shape =
        std::make_shared<file_shape>(*make_shape(10, {0, 2, 4096}, 9000, false, {std::byte{'a'}, std::byte{'b'}}));
    shape->generation = 1;
    return shape;
  }();
  auto node = open_local_node(folder.path(), {.store = "2f0c7a0e-8f0b-4c52-9f0e-0b6f6f3c9a11"});
  REQUIRE_FALSE(create(*node, f, 1));
  const char* word = "oocarray";
  REQUIRE_FALSE(write(*node, f, 1, request::contiguous(4100, 8), reinterpret_cast<const std::byte*>(word)));
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
  REQUIRE(documented.size() == 9 * 16 + 8);
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
  CHECK(judge({9, 9}, 7, 9) == verdict::lost);
  CHECK(judge({9, 9}, 9, 9) == verdict::good);
  CHECK(judge({0, 0}, 7, 9) == verdict::fill);
}

TEST_CASE("entries and marks lie as documented") {
  CHECK(checksum_file::mark_offset(447) == 4096 - 8);
  CHECK(checksum_file::entry_offset(458'751) == 4096 + 8 * 458'751);
  CHECK(checksum_file::mark_offset(448) == 3'674'112);
  CHECK(checksum_file::entry_offset(458'752) == 3'674'112 + 4096);
  CHECK(checksum_file::mark_offset(448 + 512) == 3'674'112 + 4'198'400);
  CHECK(checksum_file::entry_offset(458'752 + 524'288) == 3'674'112 + 4'198'400 + 4096);
  CHECK(checksum_file::bytes_for(1) == 4104);
}

TEST_CASE("no seed is zero or the checksum of zeros, and places have different ones") {
  const bytes zeros(4096);
  CHECK(object_seeds::sum_of_zeros == chunk_sum(zeros.data()));
  object_identity who;
  who.id = 7;
  const object_seeds here(who);
  who.stripe_index = 1;
  const object_seeds there(who);
  unsigned same = 0;
  for (std::uint64_t c = 0; c < 100'000; ++c) {
    same += here.of_chunk(c) == there.of_chunk(c) || here.of_chunk(c) == here.of_chunk(c + 1);
    REQUIRE(here.of_chunk(c) != 0);
  }
  CHECK(same < 3);
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
