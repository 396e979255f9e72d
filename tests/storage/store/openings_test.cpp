// Openings for writing beside those who make the file longer or shorter at the same time.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "oocarray/file.hpp"
#include "oocarray/open_file.hpp"
#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/service/writer_claim.hpp"
#include "support/node_fixture.hpp"
#include "support/rounds.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

struct two_nodes {
  store open() const {
    return store::open("local:" + (folder.path() / "0").string() + "," + (folder.path() / "1").string());
  }
  std::shared_ptr<storage::store_core> core() const { return open().core(); }

  temporary_folder folder;
};

}  // namespace

TEST_CASE("an opening beside a file that is cut off and made longer leaves no stripe object behind its generation") {
  const two_nodes s;
  const std::vector<std::byte> small(100, std::byte{1}), large(10000, std::byte{2});
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, small);
  const auto other = s.core();
  // The opening has found the file with one stripe object.
  const storage::claim_taker meanwhile{[&](const storage::entry& e) {
    auto f = other->resize(other->opened(e), 0, {});
    f = other->grow(f, large.size());
    REQUIRE_FALSE(f.file->write(request::contiguous(0, large.size()), large.data()));
    return true;
  }};
  const auto core = s.core();
  auto f = core->open("f", storage::open_mode::read_write, false, meanwhile);
  f = core->refresh(f);
  std::vector<std::byte> found(large.size());
  CHECK_FALSE(f.file->read(request::contiguous(0, large.size()), found.data()));
  CHECK(found == large);
  CHECK_NOTHROW(core->sync(f));
  CHECK_NOTHROW(file::open(s.open(), "f", file_access::read_write).write_at(0, large));
}

TEST_CASE("an opening that has found a file before its claim knows what others have done until then") {
  const two_nodes s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}}).write_at(0, std::vector<std::byte>(100, std::byte{1}));
  const auto other = s.core(), core = s.core();
  const storage::claim_taker grows{[&](const storage::entry& e) {
    (void)other->grow(other->opened(e), 20'000);
    return true;
  }};
  CHECK(core->open("f", storage::open_mode::read_write, false, grows).meta.size == 20'000);
  CHECK(core->open("f", storage::open_mode::read, false, grows).meta.size == 20'000);

  unsigned claims = 0;
  storage::file_id last = 0;
  const storage::claim_taker replaces{[&](const storage::entry& e) {
    if (++claims == 1) {
      file::create(s.open(), "g", {}).write_at(0, std::vector<std::byte>(7, std::byte{1}));
      other->replace("g", "f");
    }
    last = e.id;
    return true;
  }};
  const auto f = core->open("f", storage::open_mode::read_write, false, replaces);
  CHECK((claims == 2 && f.meta.id == last && f.meta.size == 7));

  const storage::claim_taker begins{[&](const storage::entry& e) {
    other->metadata().set_in_progress(e.id, "ooc::sort of process 1");
    return true;
  }};
  CHECK_THROWS_WITH(core->open("f", storage::open_mode::read_write, false, begins),
                    Catch::Contains("in the middle of an algorithm"));
  CHECK_NOTHROW(core->open("f", storage::open_mode::read_write, true, begins));
}

TEST_CASE("an opening is refused where the array is another one once it is claimed") {
  const two_nodes s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  const auto core = s.core();
  bool claimed = false;
  const storage::claim_taker taker{[&](const storage::entry&) { return claimed = true; }, true, false,
                                   [&](const storage::entry&) {
                                     REQUIRE(claimed);
                                     throw usage_error(errc::type_mismatch, "other extents");
                                   }};
  CHECK_THROWS_WITH(core->open("f", storage::open_mode::read_write, false, taker), Catch::Contains("other extents"));
  CHECK(core->metadata().lookup("f").generation == 1);  // nobody else's claim has ended
}

TEST_CASE("who gives back what was reserved keeps nobody from opening the file for writing") {
  const two_nodes s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  const int count = rounds(200, 2000);
  std::thread others([&] {
    const auto core = s.core();
    for (int i = 0; i < count; ++i) {
      auto claim = claim_to_write(*core, core->metadata().lookup("f").id, true);
      auto f = core->open("f", storage::open_mode::read);
      f = core->reserve(f, 10'000, 100'000);
      claim.reset();
      (void)core->give_back(f);
    }
  });
  const auto core = s.core();
  const auto id = core->metadata().lookup("f").id;
  int refused = 0;
  for (int i = 0; i < count; ++i)
    if (!claim_to_write(*core, id, true)) ++refused;
  others.join();
  CHECK(refused == 0);
}

TEST_CASE("a growth leaves others what they have reserved") {
  const two_nodes s;
  file::create(s.open(), "f", {.striping = {0, 2, 4096}});
  const auto core = s.core();
  auto f = core->open("f", storage::open_mode::read_write);
  const auto claim = claim_to_write(*core, f.meta.id, true);
  f = core->reserve(f, 50'000, 50'000);
  CHECK(core->resize(f, 10'000, {}).meta.reserved == 50'000);
  CHECK(core->resize(f, 5'000, {}).meta.reserved == 0);
}

TEST_CASE("the end of a forked child takes no claim to a file in place from its parent") {
  const temporary_folder folder;
  const std::string path = (folder.path() / "numbers").string();
  std::ofstream(path) << std::string(4096, 'x');
  const file_contents raw;
  const auto opened = [&] {
    return detail::store_in_place(
        {.path = path, .writable = true, .element_type = "u1", .element_size = 1, .contents = raw});
  };
  const store mine = opened(), other = opened();
  auto claim = mine.core()->metadata().claim_writer(0, false);
  REQUIRE(claim);
  const pid_t child = ::fork();
  if (child == 0) {
    claim.reset();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(other.core()->metadata().claim_writer(0, false));
  claim.reset();
  CHECK(other.core()->metadata().claim_writer(0, false));
}
