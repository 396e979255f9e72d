// Tests of what makes the bytes of a chunk what they were.
#include "storage/chunked/chunk_decoder.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

namespace {

using bytes = std::vector<std::byte>;

bytes bytes_of(const std::string& hex) {
  bytes b;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    b.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return b;
}

template <class T>
bytes bytes_of(const std::vector<T>& values) {
  const auto raw = std::as_bytes(std::span(values));
  return {raw.begin(), raw.end()};
}

std::string decoded(chunk_decoder& d, const bytes& stored, std::span<std::byte> to, std::uint32_t mask = 0) {
  std::memcpy(d.stored(stored.size()).data(), stored.data(), stored.size());
  return d.decode(mask, to);
}

/// 512 numbers of four bytes, i / 16, as each library packs them.
struct packed_numbers {
  chunk_filter filter;
  std::string hex;
  std::vector<std::uint32_t> parameters = {};
};
const packed_numbers packed[] = {
    {chunk_filter::deflate,
     "78daa5c3851183400000b0c78b14292e85fdb76488e42e219808c738c129ce708e0bfcc125ae708d1bfcc52dee708f07fcc3"
     "239ef08c17bce20deff8c027bef01fdff8c12faabf1f01"},
    {chunk_filter::gzip,
     "1f8b0800000000000203a5c3851183400000b0c78b14292e85fdb76488e42e219808c738c129ce708e0bfcc125ae708d1bfc"
     "c52dee708f07fcc3239ef08c17bce20deff8c027bef01fdff8c12f19da854500080000"},
    {chunk_filter::zstd,
     "28b52ffd600007b501000402000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f206401e00f27"
     "244992244992248924499254c415"},
    {chunk_filter::blosc,
     "020121040008000000080000ce00000014000000860000001b0001001b0101001b0201001b0301001b0401001b0501001b06"
     "01001b0701001b0801001b0901001b0a01001b0b01001b0c01001b0d01001b0e01001b0f01001b1001001b1101001b120100"
     "1b1301001b1401001b1501001b1601001b1701001b1801001b1901001b1a01001b1b01001b1c01001b1d01001b1e0100161f"
     "0100501f1f1f1f1f0c0000001f000100ffe85000000000000c0000001f000100ffe85000000000000c0000001f000100ffe8"
     "500000000000"},
    {chunk_filter::lzf,
     "010000e035000001203ee033030002203fe033030003203fe033030004203fe033030005203fe033030006203fe033030007"
     "203fe033030008203fe033030009203fe03303000a203fe03303000b203fe03303000c203fe03303000d203fe03303000e20"
     "3fe03303000f203fe033030010203fe033030011203fe033030012203fe033030013203fe033030014203fe033030015203f"
     "e033030016203fe033030017203fe033030018203fe033030019203fe03303001a203fe03303001b203fe03303001c203fe0"
     "3303001d203fe03303001e203fe03303001f203fe03103010000"},
    {chunk_filter::lz4,
     "000800001f0001002c1f0104002c1f0204002c1f0304002c1f0404002c1f0504002c1f0604002c1f0704002c1f0804002c1f0904002c"
     "1f0a04002c1f0b04002c1f0c04002c1f0d04002c1f0e04002c1f0f04002c1f1004002c1f1104002c1f1204002c1f1304002c1f140400"
     "2c1f1504002c1f1604002c1f1704002c1f1804002c1f1904002c1f1a04002c1f1b04002c1f1c04002c1f1d04002c1f1e04002c1f1f04"
     "002750001f000000"},
    {chunk_filter::hdf5_lz4,
     "0000000000000800000001000000001a1f0001002c1f0104002c1f0204002c1f030400275000030000000000001d4f04000000040029"
     "1f0504002c1f0604002c1f070400275000070000000000001d4f080000000400291f0904002c1f0a04002c1f0b04002750000b000000"
     "0000001d4f0c0000000400291f0d04002c1f0e04002c1f0f04002750000f0000000000001d4f100000000400291f1104002c1f120400"
     "2c1f130400275000130000000000001d4f140000000400291f1504002c1f1604002c1f170400275000170000000000001d4f18000000"
     "0400291f1904002c1f1a04002c1f1b04002750001b0000000000001d4f1c0000000400291f1d04002c1f1e04002c1f1f04002750001f"
     "000000"},
    {chunk_filter::bitshuffle_lz4,
     "000000000000080000002000000000794f0000ffff04002b003e000044000f080027000200004400000200000c00000200000c000002"
     "00000c00000200000c00000200000c00000200000c00000200000c00080200001400080200081c00000200081c000002000014000f02"
     "00090024000f0200090f3c00090f0200ffffffffffff92500000000000"},
    {chunk_filter::bitshuffle_zstd,
     "0000000000000800000020000000004a28b52ffd600007050200200000ffff232070c38278afe28748060358e88502818c76f02be440"
     "000102081040e004160234d007040808181030206040c0808001010f3812106400b61489"},
    {chunk_filter::bzip2,
     "425a68393141592653590e5db79a000001e8007fffffff80042000910daa403434068190d0155400118008c0770c110461204a1304e1"
     "4052150561f03e8581685c1786018864198681a86c1f83f86e1c0721d0770048064849200f9892401f8bb9229c2848072edbcd00"},
    {chunk_filter::szip,
     "0008000000045e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e111e11"
     "1e111e111e111e111e111e111e10000800040002",
     {169, 8, 32, 512}},
    {chunk_filter::scale_offset,
     "050000000801000000000000000000000000000000ffffffffffffffffffff0000000000000000000008421084210842108421108421"
     "0842108421084218c6318c6318c6318c6321084210842108421084294a5294a5294a5294a5318c6318c6318c6318c639ce739ce739ce"
     "739ce7421084210842108421084a5294a5294a5294a5295294a5294a5294a5294a5ad6b5ad6b5ad6b5ad6b6318c6318c6318c6318c6b"
     "5ad6b5ad6b5ad6b5ad739ce739ce739ce739ce7bdef7bdef7bdef7bdef842108421084210842108c6318c6318c6318c63194a5294a52"
     "94a5294a529ce739ce739ce739ce73a5294a5294a5294a5294ad6b5ad6b5ad6b5ad6b5b5ad6b5ad6b5ad6b5ad6bdef7bdef7bdef7bde"
     "f7c6318c6318c6318c6318ce739ce739ce739ce739d6b5ad6b5ad6b5ad6b5adef7bdef7bdef7bdef7be739ce739ce739ce739cef7bde"
     "f7bdef7bdef7bdf7bdef7bdef7bdef7bde00",
     {2, 0, 512, 0, 4, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

bytes unpacked() {
  std::vector<std::uint32_t> n(512);
  for (std::uint32_t i = 0; i < n.size(); ++i) n[i] = i / 16;
  return bytes_of(n);
}

}  // namespace

TEST_CASE("what libraries have packed is unpacked, and of damaged bytes nothing more than a chunk") {
  std::mt19937_64 random(random_seed("chunk_decoder"));
  for (const auto& [filter, hex, parameters] : packed) {
    INFO("filter " << static_cast<int>(filter));
    const bytes good = bytes_of(hex);
    bytes to(unpacked().size());
    file_chunks c{.dataset = "", .extents = {512}, .filters = {filter}, .table = {}, .fill = {}};
    c.parameters = {parameters};
    chunk_decoder d(c, 4);
    if (!can_undo(filter)) {
      CHECK(decoded(d, good, to).find("this build of the library cannot undo") != std::string::npos);
      continue;
    }
    CHECK(decoded(d, good, to) == "");
    CHECK(to == unpacked());
    for (int round = 0; round < 2000; ++round) {
      bytes bad = good;
      bad.resize(between(random, 0, 3) == 0 ? between(random, 0, bad.size()) : bad.size());
      for (std::uint64_t n = between(random, 1, 3); n > 0 && !bad.empty(); --n)
        bad[between(random, 0, bad.size() - 1)] = static_cast<std::byte>(between(random, 0, 255));
      std::vector<std::byte> guarded(to.size());
      (void)decoded(d, bad, guarded);  // the sanitizer sees what is written elsewhere
    }
    bytes less(to.size() - 4), more(to.size() + 4);
    CHECK(decoded(d, good, less) != "");
    CHECK(decoded(d, good, more) == "has 2048 bytes, and should have 2052");
  }
}

TEST_CASE("a chunk whose dimensions are stored in another order is put in row-major order") {
  // Element (i, j, k) of 2 x 3 x 4 is 100 i + 10 j + k; stored as [k][i][j].
  std::vector<std::uint16_t> stored, wanted;
  for (std::uint16_t k = 0; k < 4; ++k)
    for (std::uint16_t i = 0; i < 2; ++i)
      for (std::uint16_t j = 0; j < 3; ++j) stored.push_back(static_cast<std::uint16_t>(100 * i + 10 * j + k));
  for (std::uint16_t i = 0; i < 2; ++i)
    for (std::uint16_t j = 0; j < 3; ++j)
      for (std::uint16_t k = 0; k < 4; ++k) wanted.push_back(static_cast<std::uint16_t>(100 * i + 10 * j + k));
  chunk_decoder d(
      {.dataset = "", .extents = {2, 3, 4}, .filters = {}, .table = {}, .fill = {}, .stored_order = {2, 0, 1}}, 2);
  bytes to(48);
  CHECK(decoded(d, bytes_of(stored), to) == "");
  CHECK(to == bytes_of(wanted));
}

TEST_CASE("the index of a shard says where its chunks lie, if it is whole") {
  // Of two chunks, the second one never written.
  const bytes index = bytes_of(
      "1000000000000000"
      "0500000000000000"
      "ffffffffffffffff"
      "ffffffffffffffff");
  const std::vector<file_chunk> all = chunks_of_shard(index, false);
  REQUIRE(all.size() == 2);
  CHECK((all[0].offset == 16 && all[0].bytes == 5 && all[1].bytes == 0));
  CHECK_THROWS_AS(chunks_of_shard(index, true), error);
  CHECK_THROWS_AS(chunks_of_shard(std::span(index).first(20), false), usage_error);
  bytes summed = index;
  summed.resize(36);
  CHECK_THROWS_AS(chunks_of_shard(summed, true), integrity_error);
  CHECK_THROWS_AS(chunks_of_shard(bytes_of("0000000000000000"
                                           "0000000000000000"),
                                  false),
                  usage_error);
  CHECK_THROWS_AS(chunks_of_shard(bytes_of("0000000000000000"
                                           "0000000001000000"),
                                  false),
                  usage_error);
}
