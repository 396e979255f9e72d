// Packed arrays: what is read is what was packed, whoever reads it and how, and nobody writes it.

#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/file_chunks.hpp"
#include "support/random_requests.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#include "support/test_arrays.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

std::vector<std::string> codecs_here() {
  std::vector<std::string> all{"gzip", "gzip:9"};
  if (can_apply(chunk_filter::zstd)) all.insert(all.end(), {"zstd", "zstd:1"});
  if (can_apply(chunk_filter::lz4)) all.insert(all.end(), {"lz4", "lz4:8"});
  return all;
}

std::vector<std::byte> bytes_of(const store& s, const std::string& path) {
  std::vector<std::byte> all(s.entry(path).size);
  const file f = file::open(s, path);
  f.read(request::contiguous(0, all.size()), std::span(all));
  return all;
}

/// Reads parts of it, in one piece and in many, and compares them.
template <class Engine>
void check_packed_parts(Engine& g, const store& s, const std::string& path, const std::vector<std::byte>& all) {
  const file f = file::open(s, path);
  for (const request& r : random_requests(g, all.size(), 2)) {
    std::vector<std::byte> found(r.memory_end()), wanted(r.memory_end());
    f.read(r, std::span(found));
    r.for_each_run([&](std::uint64_t at, std::uint64_t to, std::uint64_t bytes) {
      std::memcpy(wanted.data() + to, all.data() + at, bytes);
    });
    r.for_each_run([&](std::uint64_t, std::uint64_t to, std::uint64_t bytes) {
      REQUIRE(std::memcmp(found.data() + to, wanted.data() + to, bytes) == 0);
    });
  }
}

/// An array of smooth values, of which a part may never have been written, packed and unpacked at random.
template <class T, class Engine>
void packed_round(Engine& g, const store& s, runtime& rt) {
  const std::string path = "packed";
  const std::size_t rows = between(g, 1, 300), columns = between(g, 1, 300);
  array_options<T> o;
  o.block = 16_KiB;
  o.sparse = between(g, 0, 1) == 1;
  if (between(g, 0, 1) == 1) o.fill = static_cast<T>(7);
  if (between(g, 0, 2) == 0) o.order = file_order::tiled, o.tile = {16, 32};
  const std::size_t written = between(g, 0, rows);
  {
    ooc_array<T, 2> a(rt, s, path, create, {rows, columns}, o);
    for (std::size_t i = 0; i < written; ++i)
      for (std::size_t j = 0; j < columns; ++j) a[i][j] = static_cast<T>(i + j / 8);
    a.writeback();
  }
  const std::vector<std::byte> all = bytes_of(s, path);
  pack_options how;
  how.codec = codecs_here()[between(g, 0, codecs_here().size() - 1)];
  how.shuffle = between(g, 0, 1) == 1;
  how.chunk = 4096 << between(g, 0, 5);
  std::uint64_t stepped = 0;
  how.step = [&](std::uint64_t n) { stepped += n; };
  INFO(rows << " x " << columns << ", " << how.codec << ", chunks of " << how.chunk);
  const std::uint64_t packed = s.pack(path, how);
  const store_entry e = s.entry(path);
  REQUIRE(e.size == all.size());
  REQUIRE(e.codec.empty() == (packed == e.size));
  REQUIRE(e.packed_size == (e.codec.empty() ? 0 : packed));
  if (!e.codec.empty()) CHECK(stepped == all.size());
  CHECK(s.pack(path, how) == packed);
  check_packed_parts(g, s, path, all);
  REQUIRE(bytes_of(s, path) == all);
  {
    const ooc_array<T, 2> a(rt, s, path, open_read_only);
    for (int n = 0; n < 300; ++n) {
      const std::size_t i = between(g, 0, rows - 1), j = between(g, 0, columns - 1);
      REQUIRE(a[i][j] == (i < written ? static_cast<T>(i + j / 8) : o.fill.value_or(T{})));
    }
  }
  s.unpack(path);
  CHECK(s.entry(path).codec.empty());
  REQUIRE(bytes_of(s, path) == all);
  ooc_array<T, 2> again(rt, s, path, ooc::open);
  again[0][0] = static_cast<T>(99);
  again.writeback();
  CHECK(s.core()->open(path, storage::open_mode::read).meta.sparse == o.sparse);
  again.close();
  s.remove(path);
}

/// A packed array of numbers that become shorter, and its numbers.
struct packed_numbers {
  test_store where;
  store s = where.handle();
  runtime rt{memory(where.staging() + 8_MiB)};
  static constexpr std::size_t elements = 100'000;

  explicit packed_numbers(bool packed = true, store_kind kind = store_kind::in_memory) : where(kind) {
    {
      ooc_array<double, 1> a(rt, s, "a", create, {elements}, options());
      for (std::size_t i = 0; i < elements; ++i) a[i] = value(i);
      a.writeback();
    }
    if (packed) s.pack("a", {.codec = "gzip", .chunk = 16_KiB});
  }
  static array_options<double> options() {
    array_options<double> o;
    o.block = 32_KiB;
    return o;
  }
  static double value(std::size_t i) { return static_cast<double>(i / 10); }
  std::uint64_t object_bytes() const { return s.core()->metadata().lookup("a").reserved; }
  /// The packed file itself.
  storage::striped_file raw() const {
    storage::entry e = s.core()->metadata().lookup("a");
    const storage::opened_file f = s.core()->opened(std::move(e));
    return storage::striped_file(f.file->shape_handle(), s.core()->nodes());
  }
};

template <class F>
std::string refusal_of(std::error_code code, const F& f) {
  try {
    f();
  } catch (const error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  FAIL("nothing was thrown");
  return "";
}

using Catch::Contains;

}  // namespace

TEST_CASE("a packed array has what was packed, for whoever reads it") {
  std::mt19937_64 g(random_seed("packed arrays"));
  const test_store where(store_kind::in_memory);
  runtime rt(memory(where.staging() + 8_MiB));
  for (int n = 0; n < rounds(12); ++n) {
    packed_round<double>(g, where.handle(), rt);
    packed_round<std::int16_t>(g, where.handle(), rt);
    packed_round<std::uint8_t>(g, where.handle(), rt);
  }
}

TEST_CASE("who reads an array while it is packed and unpacked reads on") {
  packed_numbers t(false);
  ooc_array<double, 1> a(t.rt, t.s, "a", open_read_only, t.options());
  const auto check = [&] {
    double sum = 0, wanted = 0;
    for (std::size_t i = 0; i < t.elements; i += 97) sum += a[i], wanted += t.value(i);
    CHECK(sum == wanted);
  };
  for (int n = 0; n < 2; ++n) {
    check();
    t.s.pack("a", {.codec = "gzip"});
    a.invalidate();
    check();
    t.s.unpack("a");
    a.invalidate();
    check();
  }
}

TEST_CASE("a packed array is not opened for writing, and the error says what helps") {
  packed_numbers t;
  const std::error_code read_only = std::make_error_code(std::errc::read_only_file_system);
  CHECK_THAT(refusal_of(read_only, [&] { ooc_array<double, 1>(t.rt, t.s, "a", ooc::open); }),
             Contains("'a' is packed (") && Contains("`ooc unpack`"));
  CHECK_THAT(refusal_of(read_only, [&] { file::open(t.s, "a", file_access::read_write); }), Contains("`ooc unpack`"));
}

TEST_CASE("an array that somebody writes is not packed") {
  packed_numbers t(false);
  const ooc_array<double, 1> a(t.rt, t.s, "a", ooc::open, t.options());
  CHECK_THAT(refusal_of(errc::busy, [&] { t.s.pack("a"); }), Contains("'a' is open for writing"));
}

TEST_CASE(
    "who has the file of an array open for writing is refused from when it is packed, and changes nothing there") {
  const bool while_packing = GENERATE(false, true);
  CAPTURE(while_packing);
  packed_numbers t(false, store_kind::local);
  const std::vector<std::byte> all = bytes_of(t.s, "a"), other(4096, std::byte{7});
  file f = file::open(t.s, "a", file_access::read_write);
  std::string refusal;
  const auto write = [&] {
    try {
      f.write_at(0, other);
    } catch (const error& e) {
      CHECK(e.code() == std::errc::read_only_file_system);
      refusal = e.what();
    }
  };
  std::thread writer;  // it waits for the end of the packing
  t.s.pack("a", {.codec = "gzip", .chunk = 16_KiB, .step = [&](std::uint64_t) {
                   if (while_packing && !writer.joinable()) writer = std::thread(write);
                 }});
  if (while_packing)
    writer.join();
  else
    write();
  CHECK_THAT(refusal, Contains("'a' is packed (") && Contains("`ooc unpack`"));
  CHECK(bytes_of(t.s, "a") == all);
}

TEST_CASE("what packing makes no shorter stays as it is") {
  packed_numbers t(false);
  std::mt19937_64 g(1);
  {
    ooc_array<double, 1> a(t.rt, t.s, "a", ooc::open, t.options());
    for (std::size_t i = 0; i < t.elements; ++i) a[i] = std::bit_cast<double>(g());
    a.writeback();
  }
  const std::vector<std::byte> all = bytes_of(t.s, "a");
  CHECK(t.s.pack("a", {.codec = "gzip"}) == all.size());
  CHECK(t.s.entry("a").codec.empty());
  CHECK(bytes_of(t.s, "a") == all);
}

TEST_CASE("a small array is one chunk of its size, and takes no more memory than that needs") {
  packed_numbers t(false);
  ooc_array<std::int32_t, 1>(t.rt, t.s, "small", create, {3000}, {.fill = 5}).close();
  const std::uint64_t bytes = t.s.pack("small", {.codec = "gzip"});
  CHECK(t.s.entry("small").codec == "shuffle+gzip:3/12000");
  CHECK(bytes == 32 + 4);  // nothing but the fill value was ever written
  const ooc_array<std::int32_t, 1> a(t.rt, t.s, "small", open_read_only);
  CHECK(a[2999] == 5);
  CHECK(t.s.core()->open("small", storage::open_mode::read).file->unpacked()->memory(1 << 20) < 300'000);
}

TEST_CASE("what cannot be packed is refused, and the error says why") {
  packed_numbers t(false);
  const auto refusal = [&](const std::string& path, const pack_options& how = {.codec = "gzip"}) {
    return refusal_of(errc::invalid_request, [&] { t.s.pack(path, how); });
  };
  file::create(t.s, "plain");
  t.s.mkdir("folder");
  CHECK_THAT(refusal("plain"), Contains("'plain'") && Contains("only an array"));
  CHECK_THAT(refusal("folder"), Contains("only an array"));
  array_options<double> o;
  o.commits = true;
  ooc_array<double, 1>(t.rt, t.s, "commits", create, {1000}, o).close();
  CHECK_THAT(refusal("commits"), Contains("--flatten"));
  for (const char* codec : {"", "zip", "zstd:0", "zstd:23", "gzip:x", "gzip:10", "lz4:"})
    CHECK_THAT(refusal("a", {.codec = codec}), Contains("codec '" + std::string(codec) + "'") && Contains("gzip"));
  CHECK_THAT(refusal("a", {.codec = "gzip", .chunk = 100}), Contains("4 KiB to 64 MiB"));
  CHECK_THAT(refusal("a", {.codec = "gzip", .chunk = 65_MiB}), Contains("4 KiB to 64 MiB"));
  CHECK(t.s.entry("a").codec.empty());
}

TEST_CASE("a packed array that is damaged is an error that names it, never other elements", "[nodes]") {
  const packed_numbers t;
  const storage::striped_file raw = t.raw();
  const auto reads = [&](std::uint64_t at) {
    const file f = file::open(t.s, "a");
    double one = 0;
    f.read(request::contiguous(at, 8), std::as_writable_bytes(std::span(&one, 1)));
    return one;
  };
  std::vector<std::byte> before(t.object_bytes());
  throw_if(raw.read(request::contiguous(0, before.size()), before.data()));
  const auto with = [&](std::uint64_t at, std::byte flip, const std::function<void()>& f) {
    const std::byte other = before[at] ^ flip;
    throw_if(raw.write(request::contiguous(at, 1), &other));
    f();
    throw_if(raw.write(request::contiguous(at, 1), &before[at]));
  };
  SECTION("its header") {
    with(3, std::byte{1}, [&] {
      CHECK_THAT(refusal_of(errc::corrupt, [&] { reads(0); }), Contains("'a' is packed, and its header is none"));
    });
  }
  SECTION("its table") {
    with(before.size() - 2, std::byte{1}, [&] {
      CHECK_THAT(refusal_of(errc::corrupt, [&] { reads(0); }), Contains("table does not match its checksum"));
    });
  }
  SECTION("a chunk") {
    with(32 + 20, std::byte{0xff}, [&] {
      CHECK_THAT(refusal_of(errc::corrupt, [&] { reads(0); }), Contains("reading 'a'") && Contains("chunk [0]"));
      CHECK(reads(8 * 99'999) == t.value(99'999));
    });
  }
  CHECK(reads(80) == t.value(10));
}

TEST_CASE("many threads read a packed array") {
  packed_numbers t;
  const ooc_array<double, 1> a(t.rt, t.s, "a", open_read_only, t.options());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (std::size_t i = k; i < t.elements; i += 53) wrong += a[i] != t.value(i);
    });
  for (std::thread& one : threads) one.join();
  CHECK(wrong == 0);
}
