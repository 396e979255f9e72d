#include "storage/base/durable_file.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <string>

#include "oocarray/error.hpp"
#include "support/small_space.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc::testing;

TEST_CASE("a small file of which only a part can be written says why") {
  const temporary_folder folder;
  const int status = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    errno = 0;
    try {
      ooc::storage::write_durably(folder.path() / "f", std::string(8192, 'x'));
      return 2;
    } catch (const ooc::error& e) {
      return e.code() == std::errc::file_too_large ? 0 : 3;
    }
  });
  CHECK(status == 0);
}
