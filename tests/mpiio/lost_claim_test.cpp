// A rank that was out of touch with the metadata server for so long that it has lost its claim to write the file.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "mpiio/stored_file.hpp"
#include "storage/service/writer_claim.hpp"
#include "support/cluster_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::mpiio;
using namespace ooc::testing;

namespace {

constexpr std::size_t length = 8192;

std::string write(stored_file& f, char c) {
  std::string text(length, c);
  const ooc_mpiio_extent e{text.data(), nullptr, length};
  try {
    (void)f.write({&e, 1}, false)->wait();
  } catch (const error& x) {
    return x.what();
  }
  return "written";
}

}  // namespace

TEST_CASE("a rank that has lost its claim writes nothing over the bytes of who has the file alone") {
  cluster servers{{.nodes = 2, .io_servers = 2, .metad = {"--grace", "2"}}};
  int to[2], from[2];
  REQUIRE(::pipe(to) == 0);
  REQUIRE(::pipe(from) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "not as planned";
    try {
      // Two ranks of a program, both stopped for too long.
      const store a = store::open(servers.url()), b = store::open(servers.url());
      const auto first = stored_file::open(a, {.path = "f", .create = true, .write = true});
      const auto second = stored_file::open_known(b, first->id(), true);
      said = write(*second, 's');
      char c = 'o';
      if (::write(from[1], &c, 1) != 1 || ::read(to[0], &c, 1) != 1) ::_exit(1);
      if (said == "written") said = write(*second, 's');
    } catch (const std::exception& e) {
      said = e.what();
    }
    (void)!::write(from[1], said.data(), said.size());
    ::_exit(0);
  }
  char c = 0;
  REQUIRE(::read(from[0], &c, 1) == 1);
  ::kill(child, SIGSTOP);
  servers.metad().restart();

  const store s = store::open(servers.url());
  storage::store_core& core = *s.core();
  std::shared_ptr<void> alone;
  const auto take = [&](const storage::entry& e) {
    alone = storage::claim_to_write(core, e.id, false);
    return alone != nullptr;
  };
  std::optional<storage::opened_file> mine;
  REQUIRE(soon([&] {
    mine = core.open("f", storage::open_mode::read_write, false, {take, true});
    return alone != nullptr;
  }));
  const std::string text(length, 'm');
  REQUIRE_FALSE(mine->file->write(request::contiguous(0, length), reinterpret_cast<const std::byte*>(text.data())));

  ::kill(child, SIGCONT);
  REQUIRE(::write(to[1], "g", 1) == 1);
  std::string said(4096, '\0');
  const ssize_t n = ::read(from[0], said.data(), said.size());
  said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  ::waitpid(child, nullptr, 0);
  CHECK_THAT(said, Catch::Contains("ended its claim"));
  std::string found(length, '?');
  REQUIRE_FALSE(mine->file->read(request::contiguous(0, length), reinterpret_cast<std::byte*>(found.data())));
  CHECK((found == text));
}
