// Frames and parts, byte for byte as docs/wire-format.md has them.
#include "storage/wire/frame.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <sstream>

#include "storage/layout/crc32c.hpp"
#include "storage/layout/io_part.hpp"
#include "storage/wire/messages.hpp"
#include "storage/wire/node_calls.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::storage;

namespace {

std::string hex(std::string_view bytes) {
  std::string text;
  char two[3];
  for (const char c : bytes) {
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(c));
    text += two;
  }
  return text;
}

/// The hexadecimal lines that follow `heading` in the document, joined.
std::string documented(const std::string& heading) {
  std::ifstream document(OOC_WIRE_FORMAT_DOCUMENT);
  REQUIRE(document);
  std::string line, found;
  while (std::getline(document, line) && line != heading) {
  }
  while (std::getline(document, line)) {
    if (line.empty() && found.empty()) continue;
    if (line.rfind("    ", 0) != 0) break;
    found += line.substr(4);
  }
  return found;
}

}  // namespace

TEST_CASE("the document has the calls of a node, and the rights that they need, as the list of them") {
  std::ifstream document(OOC_WIRE_FORMAT_DOCUMENT);
  const std::regex row(
      R"(\| (\d+) \| (\w+) \| client \| (IoRequest)?[^|]*\|[^|]*\| (VerifyReport|FileIds|Changes|).*)");
  std::map<std::uint32_t, std::string> calls_with;  // by right
  std::size_t found = 0;
  std::smatch m;
  std::string all;
  for (std::string line; std::getline(document, line); all += line + "\n") {
    if (!std::regex_match(line, m, row)) continue;
    CAPTURE(line);
    const wire::served_call* c = wire::served(static_cast<wire::frame_kind>(std::stoi(m[1])));
    CHECK((m[3].length() != 0) == (c != nullptr && c->rights != 0));
    CHECK((m[4] == "VerifyReport") == (c != nullptr && c->call == io_kind::verify));
    CHECK((m[4] == "Changes") == (c != nullptr && c->call == io_kind::find_changes));
    CHECK((m[4] == "FileIds") == (c != nullptr && c->call == io_kind::list));
    if (c == nullptr) continue;
    ++found;
    for (std::uint32_t right = right_read; right <= right_resize; right *= 2)
      if (std::string& calls = calls_with[right]; c->rights & right) calls += (calls.empty() ? "" : ", ") + m[2].str();
  }
  CHECK(found == std::size(wire::served_calls));
  std::string rights;
  for (const auto& [right, calls] : calls_with)
    rights += (rights.empty() ? "" : "; ") + std::to_string(right) + ": " + calls;
  INFO(rights);
  CHECK(all.find("| " + rights + " |") != std::string::npos);
}

TEST_CASE("the example of the document is what is sent") {
  wire::io_request r;
  auto file = std::make_shared<file_shape>();
  file->id = 7;
  file->striping = {0, 2, 65536};
  file->size = 1 << 20;
  file->name = "a";
  r.file = file;
  r.wanted = std::make_shared<const request>(request::contiguous(0, 4096));
  wire::frame_header h;
  h.kind = wire::frame_kind::read;
  h.flags = wire::frame_header::last;
  h.id = 1;
  CHECK(hex(wire::encode_frame(h, wire::encode(r))) == documented("The read:"));

  const std::vector<std::byte> data(4096, std::byte{0x2a});
  part_cutter parts({{0, 0, 4096}});
  const io_part part = parts.next();
  REQUIRE(part.sums() == 1);
  std::uint32_t sum = 0;
  compute_sums(part, data.data(), &sum);
  h.kind = wire::frame_kind::reply;
  h.incarnation = 0x1122334455667788;
  h.sums = 1;
  std::string reply = wire::encode_frame(h, {}, static_cast<std::uint32_t>(part.wire_bytes()));
  reply.append(reinterpret_cast<const char*>(&sum), 4);
  CHECK(hex(reply) == documented("The reply, before the 4096 bytes `2a`:"));
}

TEST_CASE("a header that cannot be trusted is refused with the reason") {
  wire::frame_header h;
  const std::string good = wire::encode_frame(h, "body");
  const auto fault = [](std::string bytes, const wire::frame_limits& limits = {}) {
    wire::frame_header read;
    std::memcpy(&read, bytes.data(), sizeof read);
    return wire::header_fault(read, limits);
  };
  CHECK(fault(good).empty());
  for (std::size_t i = 0; i < sizeof h; ++i) {
    std::string bad = good;
    bad[i] ^= 4;
    CAPTURE(i);
    CHECK_FALSE(fault(bad).empty());
  }
  CHECK_THAT(fault(good, {.body = 3}), Catch::Contains("4 bytes") && Catch::Contains("3"));
  CHECK_THAT(fault(wire::encode_frame(h, {}, 10), {.payload = 9}), Catch::Contains("payload"));
  h.version = 2;
  CHECK_THAT(fault(wire::encode_frame(h, {})), Catch::Contains("version 2"));
  h = {};
  h.sums = 3;
  CHECK_THAT(fault(wire::encode_frame(h, {}, 8), {.payload = 8}), Catch::Contains("checksums"));
}

TEST_CASE("parts cover the regions once, in order, within their bounds") {
  const std::uint64_t seed = testing::random_seed("parts");
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round, seed);
    std::vector<region> regions;
    std::uint64_t at = testing::between(random, 0, 10000), memory = 0;
    const std::uint64_t longest = round % 2 == 0 ? 3'000'000 : 5000;
    for (std::uint64_t n = testing::between(random, 1, 400); n > 0; --n) {
      const std::uint64_t length = testing::between(random, 1, longest);
      regions.push_back({at, memory, length});
      at += length + testing::between(random, 0, 1) * testing::between(random, 1, 9000);
      memory += length + testing::between(random, 0, 100);
    }
    auto expected = regions.begin();
    std::uint64_t within = 0;
    part_cutter parts(regions);
    while (!parts.at_end()) {
      const io_part p = parts.next();
      REQUIRE(p.bytes > 0);
      REQUIRE(p.bytes <= io_part::max_bytes);
      REQUIRE(p.regions.size() <= io_part::max_regions);
      std::uint64_t whole = 0, bytes = 0;
      for (const region& one : p.regions) {
        REQUIRE(one.node_offset == expected->node_offset + within);
        REQUIRE(one.memory_offset == expected->memory_offset + within);
        within += one.length;
        bytes += one.length;
        REQUIRE(within <= expected->length);
        if (within == expected->length) ++expected, within = 0;
        const std::uint64_t first = (one.node_offset + 4095) / 4096;
        const std::uint64_t end = one.node_end() / 4096;
        whole += end > first ? end - first : 0;
      }
      REQUIRE(bytes == p.bytes);
      REQUIRE(whole == p.whole);
      REQUIRE(p.rest == (whole * 4096 != bytes));
      if (!parts.at_end() && within != 0) REQUIRE(p.regions.back().node_end() % 4096 == 0);
    }
    REQUIRE(expected == regions.end());
  }
}

TEST_CASE("any byte of a part that changes is noticed") {
  part_cutter parts({{4000, 0, 10000}, {20480, 10100, 4096}});
  const io_part p = storage::packed(parts.next());
  REQUIRE(p.whole == 3);
  REQUIRE(p.rest);
  std::vector<std::byte> memory(p.bytes);
  std::iota(reinterpret_cast<unsigned char*>(memory.data()),
            reinterpret_cast<unsigned char*>(memory.data()) + memory.size(), 0);
  std::vector<std::uint32_t> sums(p.sums());
  compute_sums(p, memory.data(), sums.data());
  CHECK(sums_match(p, memory.data(), sums.data()));
  for (std::size_t i = 0; i < memory.size(); i += 61) {
    memory[i] ^= std::byte{8};
    REQUIRE_FALSE(sums_match(p, memory.data(), sums.data()));
    memory[i] ^= std::byte{8};
  }
  CHECK(crc32c("123456789", 9) == crc32c("6789", 4, crc32c("12345", 5)));
}

TEST_CASE("bodies come back as they went, and nonsense is refused") {
  wire::io_request r;
  auto file = std::make_shared<file_shape>();
  file->id = 1ull << 60;
  file->striping = {3, 5, 4096};
  file->size = 123456789012;
  file->sparse = true;
  file->fill = {std::byte{1}, std::byte{2}};
  file->name = "deep/er";
  file->capability = std::make_shared<wire::plain_capability>(std::string("\0ticket", 7));
  r.file = file;
  r.stripe_index = 4;
  r.old_size = 77;
  r.copies = true;
  auto into = std::make_shared<file_shape>();
  into->id = 7;
  into->capability = std::make_shared<wire::plain_capability>("another");
  r.into = into;
  request wanted;
  nested_request n;
  n.file_offset = 100;
  n.memory_offset = 5;
  n.run = 8;
  n.depth = 2;
  n.levels[0] = {3, 1000, 24};
  n.levels[1] = {3, 10, 8};
  wanted.add(n);
  wanted.add(50000, 900, 17);
  r.wanted = std::make_shared<const request>(wanted);
  const std::string body = wire::encode(r);
  const wire::io_request back = wire::decode_io_request(body);
  CHECK(back.file->id == file->id);
  CHECK(back.file->striping == file->striping);
  CHECK(back.file->size == file->size);
  CHECK(back.file->sparse);
  CHECK(back.file->fill == file->fill);
  CHECK(back.file->name == "deep/er");
  CHECK(back.capability == std::string("\0ticket", 7));
  CHECK(back.stripe_index == 4);
  CHECK(back.old_size == 77);
  CHECK(back.copies);
  REQUIRE(back.into);
  CHECK(back.into->id == 7);
  CHECK(back.into_capability == "another");
  std::vector<std::uint64_t> sent, got;
  wanted.for_each_run([&](auto a, auto b, auto c) { sent.insert(sent.end(), {a, b, c}); });
  back.wanted->for_each_run([&](auto a, auto b, auto c) { got.insert(got.end(), {a, b, c}); });
  CHECK(sent == got);

  const failure f{errc::torn, "a text"};
  CHECK(wire::decode_failure(wire::encode(f)).code == errc::torn);
  const failure e{{ENOSPC, std::generic_category()}, "full"};
  CHECK(wire::decode_failure(wire::encode(e)).code == std::errc::no_space_on_device);
  CHECK(wire::decode_failure({}).code == std::errc::io_error);

  std::mt19937_64 random(testing::random_seed("bodies"));
  for (int i = 0; i < 20000; ++i) {
    std::string bad = body;
    for (std::uint64_t k = testing::between(random, 1, 6); k > 0; --k)
      bad[random() % bad.size()] = static_cast<char>(random());
    if (i % 3 == 0) bad.resize(random() % bad.size());
    try {
      wire::decode_io_request(bad);
    } catch (const usage_error&) {
    }
  }
}
