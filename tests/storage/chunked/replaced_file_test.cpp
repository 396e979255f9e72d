// What a crash of the machine leaves of a file that is written whole, and was there before.
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include "../node/failing_disk.hpp"
#include "storage/chunked/whole_file.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;

TEST_CASE("a file takes the name of another one when its bytes are on the disk, and else does not") {
  const temporary_folder folder;
  const std::string path = (folder / "f").string();
  const auto write = [&](const std::string& text) {
    return storage::write_whole_file(path, std::as_bytes(std::span(text)));
  };
  const auto contents = [&] {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  int flushed = 0;
  bool fails = false;
  const failing_disk disk([&](disk_call c, int, std::size_t) {
    flushed += c == disk_call::flush;
    return c == disk_call::flush && fails ? disk_answer{EIO, {}} : disk_answer{};
  });
  REQUIRE_FALSE(write("first"));
  CHECK(flushed == 0);  // nothing is lost with a file that was not there
  REQUIRE_FALSE(write("second"));
  CHECK(flushed == 1);
  fails = true;
  CHECK(write("third") == std::errc::io_error);
  CHECK(contents() == "second");
}
