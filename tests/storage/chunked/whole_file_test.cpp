// Tests of files that are written whole.
#include "storage/chunked/whole_file.hpp"

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "storage/base/file_descriptor.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::storage;
using namespace ooc::testing;

namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::error_code write(const std::string& path, const std::string& text) {
  return write_whole_file(path, std::as_bytes(std::span(text)));
}

}  // namespace

TEST_CASE("a file is written with the folders above it, and written again") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "c" / "0" / "1").string();
  CHECK_FALSE(write(path, "something longer"));
  CHECK(contents(path) == "something longer");
  CHECK_FALSE(write(path, "short"));
  CHECK(contents(path) == "short");
  std::ofstream(folder.path() / "c" / "0" / ".1.oocarray") << "what somebody left who died";
  CHECK_FALSE(write(path, "next"));
  CHECK(contents(path) == "next");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path() / "c" / "0"), {}) == 1);
}

TEST_CASE("a file that cannot be written is as it was, and nothing is left beside it") {
  const temporary_folder folder;
  std::ofstream(folder.path() / "c") << "no folder";
  CHECK(write((folder.path() / "c" / "0").string(), "x") == std::errc::not_a_directory);
  std::filesystem::create_directories(folder.path() / "d" / "0");
  CHECK(write((folder.path() / "d" / "0").string(), "x") == std::errc::is_a_directory);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path() / "d"), {}) == 1);
}

TEST_CASE("a file that is written again keeps its mode, and a new one has that of the file that it is to be like") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "f").string(), like = (folder.path() / "like").string();
  const auto mode = [](const std::string& of) {
    return static_cast<unsigned>(std::filesystem::status(of).permissions());
  };
  std::ofstream(like) << "description";
  for (const unsigned m : {0600U, 0640U, 0444U, 0666U, 0755U}) {
    std::filesystem::remove(path);
    std::filesystem::permissions(like, static_cast<std::filesystem::perms>(m));
    const file_descriptor open_like(::open(like.c_str(), O_RDONLY));
    CHECK_FALSE(write_whole_file(path, std::as_bytes(std::span("new", 3)), open_like.get()));
    CHECK(mode(path) == (m & 0666U));
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(m));
    std::ofstream(folder.path() / ".f.oocarray") << "what somebody left who died";
    CHECK_FALSE(write(path, "again"));
    CHECK(mode(path) == m);
    CHECK(contents(path) == "again");
  }
}

TEST_CASE("of several writers of a file each writes all of it") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "f").string();
  std::vector<std::thread> writers;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i)
        if (write(path, std::string(static_cast<std::size_t>(1 + 5000 * t), static_cast<char>('a' + t)))) ++failed;
    });
  const auto whole = [](const std::string& s) { return s == std::string(1 + 5000 * (s[0] - 'a'), s[0]); };
  for (int i = 0; i < 1000; ++i)
    if (const std::string s = contents(path); !s.empty()) REQUIRE(whole(s));
  for (std::thread& t : writers) t.join();
  CHECK(failed == 0);
  CHECK(whole(contents(path)));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
