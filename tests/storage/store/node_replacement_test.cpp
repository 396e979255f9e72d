// A folder of a local store is lost: what is elsewhere is read, an empty one takes its place, and files go on.
#include "storage/store/node_replacement.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/store_check.hpp"
#include "storage/store/store_folders.hpp"
#include "support/random_seed.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::testing;
namespace fs = std::filesystem;

namespace {

std::string url_of(const std::vector<fs::path>& folders) {
  std::string url;
  for (const fs::path& f : folders) url += (url.empty() ? "local:" : ",") + f.string();
  return url;
}

void replace(const store& s, std::uint32_t node) {
  const auto r = storage::replace_objects(*s.core(), node, [](std::uint64_t, std::uint64_t) {});
  for (const std::string& p : r.problems) FAIL(p);
}

}  // namespace

TEST_CASE("of 20 random stores that lose a folder every byte elsewhere is read, and all go on with another one") {
  std::mt19937_64 random(random_seed("lost_folders"));
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    const temporary_folder folder;
    std::vector<fs::path> folders;
    const auto nodes = static_cast<std::uint32_t>(between(random, 2, 5));
    for (std::uint32_t i = 0; i < nodes; ++i) folders.push_back(folder / ("disk" + std::to_string(i)));
    std::map<std::string, std::vector<std::byte>> files;
    {
      auto s = store::open(url_of(folders));
      for (int i = 0; i < 6; ++i) {
        storage::new_file f;
        f.size = between(random, 1, 300'000);
        f.sparse = between(random, 0, 1) != 0;
        f.striping.sf = std::uint64_t{512} << between(random, 0, 6);
        f.striping.nn = static_cast<std::uint32_t>(between(random, 1, nodes));
        f.striping.sn = static_cast<std::uint32_t>(between(random, 0, nodes - 1));
        const std::string name = "f" + std::to_string(i);
        const auto made = s.core()->create(name, f);
        std::vector<std::byte>& bytes = files[name];
        bytes.resize(f.size);
        for (std::byte& b : bytes) b = static_cast<std::byte>(random() % 255 + 1);
        throw_if(made.file->write(request::contiguous(0, f.size), bytes.data()));
        s.core()->sync(made);
      }
    }
    const auto lost = static_cast<std::uint32_t>(between(random, 1, nodes - 1));
    fs::remove_all(folders[lost]);
    const fs::path fresh = folder / "fresh";
    storage::add_replacement_folder(folders, lost, fresh);
    storage::add_replacement_folder(folders, lost, fresh);  // as one that was killed would be repeated
    folders[lost] = fresh;
    auto s = store::open(url_of(folders), {.create = false});
    replace(s, lost);
    replace(s, lost);
    for (auto& [name, bytes] : files) {
      CAPTURE(name);
      const auto f = s.core()->open(name, storage::open_mode::read_write);
      const striping& p = f.meta.striping;
      for (std::uint64_t at = 0; at < bytes.size(); at += p.sf) {
        const std::uint64_t n = std::min<std::uint64_t>(p.sf, bytes.size() - at);
        std::vector<std::byte> back(n);
        const failure failed = f.file->read(request::contiguous(at, n), back.data());
        if (p.node_of(at, nodes) == lost) {
          REQUIRE(failed);
          REQUIRE_THAT(failed.what, Catch::Contains(name) && Catch::Contains("are lost"));
        } else {
          REQUIRE_FALSE(failed);
          REQUIRE(std::memcmp(back.data(), bytes.data() + at, n) == 0);
        }
      }
      // Written again it is whole, and it can grow.
      std::reverse(bytes.begin(), bytes.end());
      throw_if(f.file->write(request::contiguous(0, bytes.size()), bytes.data()));
      const auto longer = s.core()->grow(f, bytes.size() + 100'000);
      std::vector<std::byte> back(longer.meta.size);
      throw_if(longer.file->read(request::contiguous(0, back.size()), back.data()));
      bytes.resize(back.size());
      REQUIRE(back == bytes);
    }
    const auto checked = storage::check_store(*s.core(), "", [](std::uint64_t, std::uint64_t) {});
    for (const std::string& p : checked.problems) FAIL(p);
  }
}

TEST_CASE("a folder that is there, the first one, and a folder with something in it are not replaced") {
  const temporary_folder folder;
  const std::vector<fs::path> folders{folder / "a", folder / "b"};
  (void)store::open(url_of(folders));
  CHECK_THROWS_WITH(storage::add_replacement_folder(folders, 1, folder / "c"),
                    Catch::Contains("is there: nothing of node 1 is lost"));
  CHECK_FALSE(fs::exists(folder / "c"));
  CHECK_THROWS_WITH(storage::add_replacement_folder(folders, 0, folder / "c"),
                    Catch::Contains("cannot be done without"));
  fs::remove_all(folders[1]);
  fs::create_directories(folder / "full" / "x");
  CHECK_THROWS_WITH(storage::add_replacement_folder(folders, 1, folder / "full"), Catch::Contains("is not empty"));
  storage::add_replacement_folder(folders, 1, folders[1]);  // at the old place
  CHECK(store::open(url_of(folders), {.create = false}).nodes() == 2);
}
