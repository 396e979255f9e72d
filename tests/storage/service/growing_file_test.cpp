// An open file that becomes longer, is cut off, and is known as it was a moment ago; several of them are several
// programs.
#include "storage/service/growing_file.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/service/file_move.hpp"
#include "storage/service/file_moves.hpp"
#include "storage/service/generations.hpp"
#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc::testing;
using namespace ooc;
using namespace ooc::storage;

namespace {

struct shared_file {
  shared_file() {
    new_file made;
    made.striping = {.sn = 0, .nn = 2, .sf = 4096};
    id = here.core()->create("f", made).meta.id;
  }
  std::unique_ptr<growing_file> opened() const {
    const auto core = store::open(url).core();
    return std::make_unique<growing_file>(core, core->open(id, open_mode::read_write));
  }
  entry now() const { return here.core()->metadata().find(id); }

  temporary_folder folder;
  std::string url = "local:" + (folder / "0").string() + "," + (folder / "1").string();
  store here = store::open(url);
  file_id id = 0;
};

request run(std::uint64_t at, std::size_t bytes) { return request::contiguous(at, bytes); }
const std::byte* bytes_of(const std::string& s) { return reinterpret_cast<const std::byte*>(s.data()); }

/// Stores where room was made, and tells the end of it.
stored_end store_in_room(growing_file& f, std::uint64_t at, const std::string& text) {
  for (;;) {
    f.make_room(at + text.size(), true);
    const auto as = f.current();
    const failure e = as->file->write(run(at, text.size()), bytes_of(text));
    if (!e) return {at + text.size(), as->meta};
    REQUIRE(e.code == errc::cut_off);
    f.learn_of_cut(as->meta);
  }
}

}  // namespace

TEST_CASE("room past the size is there with a claim, and goes back with it") {
  const shared_file file;
  const auto f = file.opened();
  f->make_room(1000, false);
  CHECK(f->room() == 1000);
  CHECK(file.now().size == 1000);
  f->make_room(2000, true);
  CHECK(f->room() > 16 << 20);
  CHECK(file.now().size == 1000);
  const auto other = file.opened();
  CHECK(other->room() == 1000);  // what the first one has reserved is not its own
  CHECK(f->leave());
  CHECK(f->room() == 1000);
  f->give_back();
  CHECK(file.now().reserved == 0);
}

TEST_CASE("the end of what was stored past the size is told, and not after somebody has cut the file off") {
  const shared_file file;
  const auto f = file.opened(), other = file.opened();
  const stored_end end = store_in_room(*f, 0, std::string(5000, 'a'));
  CHECK(file.now().size == 0);
  const bool cut = GENERATE(false, true);
  if (cut) other->resize(0);
  f->show(end, [](const entry&) { return entry_change(); });
  CHECK(file.now().size == (cut ? 0 : 5000));
  CHECK(f->current()->meta.size == file.now().size);
}

TEST_CASE("a file that another program makes longer is known to be longer once somebody asks") {
  const shared_file file;
  const auto f = file.opened(), other = file.opened();
  (void)other->grown_to(100);
  CHECK(f->current()->meta.size == 0);
  CHECK(f->reaching(100)->meta.size == 100);
  (void)other->grown_to(200);
  CHECK(f->reaching(100)->meta.size == 100);
  f->forget_size();
  CHECK(f->reaching(100)->meta.size == 200);
  f->make_room(100, false, growing_file::clock::duration::zero());
  CHECK(f->current()->meta.size == 200);
}

TEST_CASE("a file that was cut off and moved since is known as it is now") {
  const shared_file file;
  const auto f = file.opened(), other = file.opened();
  (void)other->grown_to(5000);
  other->resize(100);
  CHECK(f->refreshed()->meta.cuts == 2);
  auto& core = *file.here.core();
  {
    const auto alone = core.claim_unused(file.now(), "moved");
    const auto size = lock_size(core, file.id);
    const opened_file fenced = end_writes(core, file.now());
    new_file next;
    next.size = fenced.meta.size;
    next.striping = {.sn = 1, .nn = 1, .sf = 4096};
    take_over(core, core.make(".next", next), fenced.meta);
  }
  const auto moved = f->refreshed();
  CHECK(moved->meta.id != file.id);
  CHECK(moved->meta.cuts == 1);
  CHECK(moved->meta.size == 100);
}

TEST_CASE("programs that write, make room, tell, cut off and leave agree with a file in memory") {
  const std::uint64_t seed = random_seed("growing file");
  INFO("seed " << seed);
  std::mt19937_64 g(seed);
  const shared_file file;
  std::vector<std::unique_ptr<growing_file>> programs;
  for (int i = 0; i < 3; ++i) programs.push_back(file.opened());
  std::string model;
  for (int i = 0; i < 400; ++i) {
    auto& p = programs[between(g, 0, 2)];
    const std::uint64_t at = between(g, 0, 40'000);
    const std::string text(between(g, 1, 9000), static_cast<char>('a' + i % 26));
    const auto written = [&] {
      model.resize(std::max<std::size_t>(model.size(), at + text.size()));
      model.replace(at, text.size(), text);
    };
    CAPTURE(i, at, text.size());
    switch (between(g, 0, 9)) {
      case 0:
        p->resize(at);
        model.resize(at);
        break;
      case 1:
        if (p->leave()) p->give_back();
        break;
      case 2:
        p.reset();  // as if it were killed
        p = file.opened();
        break;
      case 3:
      case 4:
      case 5:
        p->show(store_in_room(*p, at, text), [](const entry&) { return entry_change(); });
        written();
        break;
      default: REQUIRE_FALSE(p->write(run(at, text.size()), bytes_of(text))); written();
    }
    REQUIRE(p->refreshed()->meta.size == model.size());
  }
  std::string found(model.size(), '?');
  REQUIRE_FALSE(programs[0]->refreshed()->file->read(run(0, found.size()), reinterpret_cast<std::byte*>(found.data())));
  CHECK((found == model));
  for (const auto& p : programs) (void)p->leave();
  programs[0]->give_back();
  CHECK(file.now().reserved == 0);
  CHECK(file.now().size == model.size());
}
