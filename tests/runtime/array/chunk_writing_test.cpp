// Chunks that are files of their own, or lie in shards, written to: random programs beside a plain vector, and faults.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "oocarray/open_file.hpp"
#include "runtime/array/chunk_folder.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

using extents = std::vector<std::size_t>;

constexpr std::size_t lines = 50, width = 1024;

}  // namespace

TEST_CASE("random programs that write to chunks leave what a vector has") {
  std::mt19937_64 random(random_seed("chunk_writing"));
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<chunk_filter> packers{chunk_filter::gzip,   chunk_filter::zstd,  chunk_filter::blosc,
                                          chunk_filter::lz4,    chunk_filter::bzip2, chunk_filter::crc32c,
                                          chunk_filter::shuffle};
  for (int program = 0; program < rounds(12); ++program) {
    const chunk_folder f;
    const extents all{1 + below(40), 1 + below(40), 1 + below(300)};
    file_chunks c = f.chunks({1 + below(20), 1 + below(20), 1 + below(200)}, below(2) * (1 + below(4)));
    c.files->index_first = below(2) == 0;
    c.files->index_summed = below(2) == 0;
    if (const chunk_filter packs = packers[below(packers.size())]; can_apply(packs)) c.filters.push_back(packs);
    if (below(2) == 0) c.stored_order = {2, 0, 1};
    const double fill = below(2) == 0 ? 0 : 7;
    c.fill.assign(reinterpret_cast<const std::byte*>(&fill), reinterpret_cast<const std::byte*>(&fill + 1));
    std::vector<double> model(all[0] * all[1] * all[2], fill);
    const auto at = [&](std::size_t i, std::size_t j, std::size_t k) -> double& {
      return model[(i * all[1] + j) * all[2] + k];
    };
    INFO("program " << program << ", extents " << all[0] << " " << all[1] << " " << all[2] << ", chunks "
                    << c.extents[0] << " " << c.extents[1] << " " << c.extents[2] << ", of a shard "
                    << (c.files->chunks.empty() ? 0 : c.files->chunks[0]));
    for (int opening = 0; opening < 3; ++opening) {
      runtime rt{{.memory = 1_MiB * (10 + below(24))}};
      auto a = open_file<double, 3>(rt, f.description, ooc::open, {.extents = all, .chunks = c}, {.block = 4096});
      for (int step = 0; step < 60; ++step) {
        std::array<std::size_t, 3> lower{}, upper{};
        for (std::size_t d = 0; d < 3; ++d) {
          lower[d] = below(all[d]);
          upper[d] = lower[d] + 1 + below(std::min<std::size_t>(all[d] - lower[d], below(4) == 0 ? 1000 : 5));
        }
        const std::size_t what = below(10);
        if (what < 8) {
          for (std::size_t i = lower[0]; i < upper[0]; ++i)
            for (std::size_t j = lower[1]; j < upper[1]; ++j)
              for (std::size_t k = lower[2]; k < upper[2]; ++k) {
                if (what < 5)
                  a[i][j][k] = at(i, j, k) = static_cast<double>(random() % 1000);
                else if (a[i][j][k] != at(i, j, k))
                  FAIL("step " << step << ": element " << i << " " << j << " " << k << " is " << a[i][j][k] << ", not "
                               << at(i, j, k));
              }
        } else {
          a.writeback();
          if (what == 9) a.invalidate();
        }
      }
      if (opening == 1) a.writeback(durable);
    }
    runtime rt{{.memory = 32_MiB}};
    const auto a = open_file<double, 3>(rt, f.description, open_read_only, {.extents = all, .chunks = c});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all[0]; ++i)
      for (std::size_t j = 0; j < all[1]; ++j)
        for (std::size_t k = 0; k < all[2]; ++k) wrong += a[i][j][k] != at(i, j, k);
    CHECK(wrong == 0);
  }
}

TEST_CASE("threads that write to the same chunks, of which few fit in memory, lose nothing") {
  const chunk_folder f;
  file_chunks c = f.chunks({20, 100}, GENERATE(0, 4));
  c.filters = {chunk_filter::gzip};
  const file_contents contents{.extents = {1000, 1000}, .chunks = c};
  {
    runtime rt{{.memory = 1_MiB}};
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 8192});
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < 1000; i += 4)
          for (std::size_t j = 0; j < 1000; ++j) a[i][j] = static_cast<double>(1000 * i + j);
        for (std::size_t i = t; i < 1000; i += 4)
          for (std::size_t j = t; j < 1000; j += 7) a[i][j] += 0.5;
      });
    for (std::thread& t : threads) t.join();
  }
  runtime rt{{.memory = 32_MiB}};
  const auto a = open_file<double, 2>(rt, f.description, open_read_only, contents);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t j = 0; j < 1000; ++j) {
      const bool again = j >= i % 4 && (j - i % 4) % 7 == 0;
      wrong += a[i][j] != static_cast<double>(1000 * i + j) + (again ? 0.5 : 0);
    }
  CHECK(wrong == 0);
}

TEST_CASE("rows that are written one after another are packed once, and read of no file") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256})};
  const store s =
      detail::store_in_place({f.description, true, false, "f8", sizeof(double), alignof(double), contents, 8_MiB});
  runtime rt{{.memory = 8_MiB}};
  ooc_array<double, 2> a(rt, s, f.description, ooc::open, {.block = 8192});
  for (std::size_t i = 0; i < lines; ++i)
    for (std::size_t j = 0; j < width; ++j) a[i][j] = 1;
  a.writeback();
  const io_stats all = s.stats();
  CHECK(all.device_writes == 20);
  CHECK(all.device_bytes_written == 8 * lines * width);
  CHECK(all.device_reads == 0);
  CHECK(f.files() == 20);
}

TEST_CASE("shards whose chunks are all written are there at once, and others with writeback") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({5, 256}, 2)};
  runtime rt{{.memory = 8_MiB}};
  auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 8192});
  for (std::size_t i = 0; i < lines; ++i)
    for (std::size_t j = 0; j < width; ++j) a[i][j] = 1;
  a.writeback();
  CHECK(f.files() == 10);
  // Of 2 x 2 chunks, and the index.
  for (const auto& e : std::filesystem::recursive_directory_iterator(f.names))
    if (e.is_regular_file()) CHECK(e.file_size() == 4 * 5 * 256 * 8 + 4 * 16 + 4);
  a[1][1] = 2;
  CHECK(f.files() == 10);
  a.close();
  const auto b = open_file<double, 2>(rt, f.description, open_read_only, contents);
  CHECK((b[1][1] == 2 && b[1][2] == 1 && b[6][1] == 1));
  CHECK(f.files() == 10);
}

TEST_CASE("more shards than may be begun at a time are written by columns", "[megabytes]") {
  const chunk_folder f;
  const file_contents contents{.extents = {400, 4000}, .chunks = f.chunks({10, 20}, 2)};
  runtime rt{{.memory = 16_MiB}};
  {
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 4096});
    for (std::size_t j = 0; j < 4000; j += 7)
      for (std::size_t i = 0; i < 400; i += 3) a[i][j] = static_cast<double>(i + j);
  }
  const auto a = open_file<double, 2>(rt, f.description, open_read_only, contents);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < 400; ++i)
    for (std::size_t j = 0; j < 4000; ++j)
      wrong += a[i][j] != (i % 3 == 0 && j % 7 == 0 ? static_cast<double>(i + j) : 0);
  CHECK(wrong == 0);
}

TEST_CASE("what another program writes to a shard meanwhile stays where it is not written here") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256}, 4)};
  const array_options<double> options{.block = 8192, .shared = true};
  runtime rt{{.memory = 16_MiB}};
  auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, options);
  a[0][0] = 1;
  a.writeback();
  std::filesystem::copy_file(f.names + "0/0", f.names + "0/saved");
  a[0][512] = 2;
  a.writeback();
  std::filesystem::rename(f.names + "0/saved", f.names + "0/0");  // another one's file, without that
  a[20][0] = 3;
  a.writeback();
  a.invalidate();
  CHECK((a[0][0] == 1 && a[0][512] == 0 && a[20][0] == 3));
}

TEST_CASE("a chunk that cannot be written stays in memory, is named, and is written when it can be") {
  const chunk_folder f;
  const std::size_t in_shard = GENERATE(0, 1);
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256}, in_shard)};
  const auto in_the_way = f.folder.path() / "c" / "0" / ".0.oocarray";
  std::filesystem::create_directories(in_the_way);
  runtime rt{{.memory = 8_MiB}};
  {
    auto a = open_file<double, 2>(rt, f.description, ooc::open, contents, {.block = 8192});
    a[3][4] = 5;
    a[30][1000] = 6;
    CHECK_THROWS_WITH(a.writeback(), Catch::Contains("writing '" + f.names) &&
                                         Catch::Contains("', dataset 'd': chunk [") &&
                                         Catch::Contains(in_shard == 0 ? "] cannot be written: Is a directory"
                                                                       : "] cannot be written to its shard: Is a d"));
    std::filesystem::remove(in_the_way);
    a.writeback(durable);
  }
  const auto a = open_file<double, 2>(rt, f.description, open_read_only, contents);
  CHECK((a[3][4] == 5 && a[30][1000] == 6 && a[0][0] == 0));
  CHECK(f.files() == 2);
}

TEST_CASE("an array whose chunks took memory gives it back when it is closed, though its object stays") {
  const chunk_folder f;
  const file_contents contents{.extents = {lines, width}, .chunks = f.chunks({10, 256})};
  runtime rt{{.memory = 8_MiB}};
  auto a = open_file<double, 2>(rt, f.description, open_read_only, contents, {.block = 8192});
  CHECK(a[1][1] == 0);
  const std::uint64_t with_one = rt.stats().budget_bytes;
  CHECK(with_one < 8_MiB);
  a.close();
  const auto b = open_file<double, 2>(rt, f.description, open_read_only, contents, {.block = 8192});
  CHECK(rt.stats().budget_bytes == with_one);
  CHECK(b[1][1] == 0);
}

TEST_CASE("chunks that cannot be written are refused when the file is opened for writing") {
  const chunk_folder f;
  runtime rt{{.memory = 8_MiB}};
  const auto refused = [&](const file_chunks& c, const char* why) {
    CHECK_THROWS_WITH((open_file<double, 2>(rt, f.description, ooc::open, {.extents = {lines, width}, .chunks = c})),
                      Catch::Contains("dataset 'd'") && Catch::Contains(why));
  };
  file_chunks c = f.chunks({10, 256});
  c.files.reset();
  c.table.resize(20);
  refused(c, "several of its chunks are in one file, and are not written to in place");
  c = f.chunks({10, 256});
  c.filters = {chunk_filter::lzf};
  refused(c, can_undo(chunk_filter::lzf) ? "filter that this build of the library cannot apply" : "cannot undo");
  c.filters = {chunk_filter::gzip};
  c.packing.resize(2);
  refused(c, "it has 1 filters, and how to pack is said of 2");
  c.packing.clear();
  c.extents = {std::size_t{1} << 20, 512};
  refused(c, "its chunks have 4 GiB or more");
  c = f.chunks({lines, 100'000});
  refused(c, "which needs a memory budget of at least");
}
