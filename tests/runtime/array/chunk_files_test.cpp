// Chunks in files of their own, in shards, and in files of other names, as file_chunks.hpp says.

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "oocarray/open_file.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t rows = 5, columns = 1024, high = 2, wide = 512;  // of the array, and of a chunk

/// Element (i, j) is 10000 i + j; beyond the array -1.
std::vector<double> chunk_at(std::size_t i0, std::size_t j0) {
  std::vector<double> c(high * wide, -1);
  for (std::size_t i = 0; i < high; ++i)
    for (std::size_t j = 0; j < wide; ++j)
      if (i0 + i < rows) c[i * wide + j] = static_cast<double>(10000 * (i0 + i) + j0 + j);
  return c;
}

void append(std::ofstream& file, const std::vector<double>& values) {
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(8 * values.size()));
}

chunk_files::state state_of(const std::string& path) {
  struct stat s {};
  if (::stat(path.c_str(), &s) != 0) return {};
  return {static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec * std::int64_t{1'000'000'000} + s.st_mtim.tv_nsec};
}

bool holds(ooc_array<double, 2>& a, std::size_t i) {
  for (std::size_t j = 0; j < columns; ++j)
    if (a[i][j] != static_cast<double>(10000 * i + j)) return false;
  return true;
}

struct described_folder {
  temporary_folder folder;
  std::string description = (folder.path() / "about").string(), names = (folder.path() / "c.").string();

  described_folder() { std::ofstream(description) << "what the chunks are"; }
  file_contents contents(const file_chunks& c) const { return {.extents = {rows, columns}, .chunks = c}; }
};

}  // namespace

TEST_CASE("chunks that are files are read when they are touched, and are the fill value where there is none") {
  const described_folder f;
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      std::ofstream file(f.names + std::to_string(i) + "-" + std::to_string(j), std::ios::binary);
      append(file, chunk_at(i * high, j * wide));
    }
  const double fill = 7;
  file_chunks c{.dataset = "d", .extents = {high, wide}, .filters = {}, .table = {}, .fill = {}};
  c.fill.assign(reinterpret_cast<const std::byte*>(&fill), reinterpret_cast<const std::byte*>(&fill + 1));
  c.files = chunk_files{.names = f.names, .separator = '-'};
  runtime rt{{.memory = 1_MiB}};
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    for (std::size_t i = 0; i < 4; ++i) CHECK(holds(a, i));
    CHECK((a[4][0] == 7 && a[4][1023] == 7));
  }
  std::filesystem::resize_file(f.names + "0-1", 100);
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    CHECK_THROWS_WITH(a.pin({{0, 0}, {1, columns}}, access_mode::read),
                      Catch::Contains("c.0-1', dataset 'd': chunk [0, 512] has 100 bytes, and should have 8192"));
    CHECK(holds(a, 3));
  }
  c.table.resize(6);
  CHECK_THROWS_WITH((open_file<double, 2>(rt, f.description, open_read_only, f.contents(c))),
                    Catch::Contains("found by the names of their files"));
}

TEST_CASE("files with names of their own are read at their places as long as they are what they were") {
  const described_folder f;
  file_chunks c{.dataset = "d", .extents = {high, wide}, .filters = {}, .table = {}, .fill = {}};
  c.files = chunk_files{};
  for (std::size_t n = 0; n < 2; ++n) {
    const std::string name = f.names + (n == 0 ? "one" : "two");
    std::ofstream file(name, std::ios::binary);
    file << "12345678";
    for (std::size_t k = 0; k < (n == 0 ? 4 : 2); ++k) {
      append(file, chunk_at(2 * n * high + k / 2 * high, k % 2 * wide));
      c.table.push_back({8 + 8192 * k, 8192, 0});
      c.files->file_of.push_back(static_cast<std::uint32_t>(n));
    }
    file.close();
    c.files->paths.push_back(name);
    c.files->states.push_back(state_of(name));
  }
  runtime rt{{.memory = 1_MiB}};
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    for (std::size_t i = 0; i < rows; ++i) CHECK(holds(a, i));
  }
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    std::filesystem::remove(f.names + "two");
    CHECK(holds(a, 0));
    // The block meets both chunks of that file, which are read side by side: either may fail first.
    CHECK_THROWS_WITH(a.pin({{4, 0}, {5, 1}}, access_mode::read),
                      Catch::Contains("c.two', dataset 'd': chunk [4, ") && Catch::Contains(" may be another one now"));
  }
  const auto refused = [&](const file_chunks& other, const char* why) {
    CHECK_THROWS_WITH((open_file<double, 2>(rt, f.description, open_read_only, f.contents(other))),
                      Catch::Contains("dataset 'd'") && Catch::Contains(why));
  };
  file_chunks other = c;
  other.files->states.pop_back();
  refused(other, "in 2 files, and states of 1");
  other = c;
  other.files->file_of[3] = 2;
  refused(other, "or others than there are");
  other = c;
  other.table[5].bytes = 8193;
  refused(other, "chunk [4, 512] has 8193 bytes at byte 8200, and the file has 16392");
  other = c;
  other.stored_order = {1, 1};
  refused(other, "does not name each of them once");
  other = c;
  other.files->paths.clear();
  refused(other, "found by the names of their files, and a table is given");
}

TEST_CASE("shards are read by their index, of which none may be wrong") {
  const described_folder f;
  file_chunks c{.dataset = "d", .extents = {high, wide}, .filters = {}, .table = {}, .fill = {}};
  c.files =
      chunk_files{.names = f.names, .separator = '.', .chunks = {2, 2}, .index_first = true, .index_summed = false};
  for (std::size_t n = 0; n < 2; ++n) {
    std::ofstream file(f.names + std::to_string(n) + ".0", std::ios::binary);
    const std::size_t chunks = n == 0 ? 4 : 2;
    for (std::uint64_t k = 0; k < 4; ++k)
      for (const std::uint64_t number :
           {k < chunks ? 64 + 8192 * k : ~std::uint64_t{0}, k < chunks ? 8192 : ~std::uint64_t{0}})
        file.write(reinterpret_cast<const char*>(&number), sizeof number);
    for (std::size_t k = 0; k < chunks; ++k) append(file, chunk_at(2 * n * high + k / 2 * high, k % 2 * wide));
  }
  runtime rt{{.memory = 1_MiB}};
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    for (std::size_t i = 0; i < rows; ++i) CHECK(holds(a, i));
  }
  std::filesystem::resize_file(f.names + "1.0", 64 + 8192);
  {
    auto a = open_file<double, 2>(rt, f.description, open_read_only, f.contents(c), {.block = 8192});
    CHECK(holds(a, 0));
    CHECK_THROWS_WITH(a.pin({{4, 0}, {5, 1}}, access_mode::read),
                      Catch::Contains("c.1.0', dataset 'd': chunk [4, ") &&
                          Catch::Contains(" cannot be found: a chunk of its shard lies beyond its end"));
  }
  c.files->chunks = {2};
  CHECK_THROWS_WITH((open_file<double, 2>(rt, f.description, open_read_only, f.contents(c))),
                    Catch::Contains("dataset 'd'") && Catch::Contains("other dimensions than the array"));
}
