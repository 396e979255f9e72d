// Ranks that go on when rank 0, which holds the claim to write their array for all, has been killed.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>

#include "oocarray/commit.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/temporary_folder.hpp"
#include "support/thread_group.hpp"

using namespace ooc;
using testing::temporary_folder;

namespace {

constexpr std::size_t length = 4096;

using array = ooc_array<int, 1>;

void fill(array& a, int value) {
  for (std::size_t i = 0; i < length; ++i) a[i] = value;
}

/// A rank in a process of its own.  It opens the array, changes it if it is rank 1, and stores that when it is told to.
class rank_process {
 public:
  rank_process(int rank, int socket, const std::string& url) {
    int parent[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, parent) != 0) throw std::runtime_error("no sockets");
    child_ = ::fork();
    ::close(parent[child_ != 0 ? 1 : 0]);
    socket_ = parent[child_ != 0 ? 0 : 1];
    if (child_ == 0) ::_exit(run(std::make_shared<testing::process_pair>(rank, socket), url));
  }
  ~rank_process() {
    kill();
    ::close(socket_);
  }
  void wait_until_open() {
    char c = 0;
    REQUIRE(::read(socket_, &c, 1) == 1);
    REQUIRE(c == 'o');
  }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  /// Has it store what it has changed; what it was told then.
  std::string store_now() {
    REQUIRE(::write(socket_, "g", 1) == 1);
    std::string said(4096, '\0');
    const ssize_t n = ::read(socket_, said.data(), said.size());
    said.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return said;
  }

 private:
  int run(const std::shared_ptr<process_group>& group, const std::string& url) const {
    try {
      runtime rt({.memory = 8_MiB});
      array a(rt, store::open(url), "a", ooc::open, {.group = group});
      if (group->rank() == 1) fill(a, 2);
      char c = 'o';
      if (::write(socket_, &c, 1) != 1 || ::read(socket_, &c, 1) != 1) return 1;
      std::string said = "nothing";
      try {
        a.writeback();
      } catch (const error& e) {
        said = e.what();
        if (e.code() != std::error_code(ESTALE, std::generic_category())) said = "not as planned: " + said;
      }
      (void)!::write(socket_, said.data(), said.size());
      ::_exit(0);  // closing the array would wait for the other rank
    } catch (const std::exception&) {
      return 2;
    }
  }

  int socket_ = -1;
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("ranks whose rank 0 was killed store nothing over the bytes of who writes the array alone since then") {
  const bool commits = GENERATE(true, false);
  CAPTURE(commits);
  temporary_folder folder;
  const std::string url = "local:" + (folder / "store").string();
  {
    runtime rt({.memory = 8_MiB});
    array a(rt, store::open(url), "a", create, {length}, {.commits = commits});
    fill(a, 1);
    if (commits) ooc::commit({&a});
  }
  int between[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, between) == 0);
  rank_process first(0, between[0], url), second(1, between[1], url);
  first.wait_until_open();
  second.wait_until_open();
  first.kill();
  {
    runtime rt({.memory = 8_MiB});
    array a(rt, store::open(url), "a", ooc::open);
    CHECK(a[0] == 1);
    fill(a, 3);
    a.writeback();
    const std::string said = second.store_now();
    INFO(said);
    CHECK(said.starts_with("array 'a'"));
    CHECK(said.find("ended its claim") != said.npos);
    if (commits) ooc::commit({&a});
  }
  for (const int fd : between) ::close(fd);
  runtime rt({.memory = 8_MiB});
  const array a(rt, store::open(url), "a", open_read_only);
  CHECK(std::all_of(a.begin(), a.end(), [](int v) { return v == 3; }));
}

TEST_CASE("ranks whose rank 0 was killed go on storing as long as nobody else has opened the array") {
  temporary_folder folder;
  const std::string url = "local:" + (folder / "store").string();
  {
    runtime rt({.memory = 8_MiB});
    array a(rt, store::open(url), "a", create, {length});
    fill(a, 1);
  }
  int between[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, between) == 0);
  rank_process first(0, between[0], url), second(1, between[1], url);
  first.wait_until_open();
  second.wait_until_open();
  first.kill();
  CHECK(second.store_now() == "nothing");
  for (const int fd : between) ::close(fd);
  runtime rt({.memory = 8_MiB});
  const array a(rt, store::open(url), "a", open_read_only);
  CHECK(std::all_of(a.begin(), a.end(), [](int v) { return v == 2; }));
}
