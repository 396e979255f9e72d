// Stores that stay open between the files that a program opens in them.
#include "mpiio/kept_stores.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "oocarray/error.hpp"
#include "storage/service/store_core.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace ooc::mpiio;
using namespace ooc::testing;

namespace {

struct kept_store {
  kept_store() {
    make();
    stores.keep();
  }
  void make() { (void)store::open(url); }
  std::weak_ptr<storage::store_core> used() {
    return stores.in_store(url, [](const store& s) { return std::weak_ptr(s.core()); });
  }

  temporary_folder folder;
  std::filesystem::path node = folder / "n0";
  std::string url = "local:" + node.string();
  kept_stores stores;
};

}  // namespace

TEST_CASE("a store stays open after its last use, until it is closed") {
  kept_store k;
  const auto first = k.used(), second = k.used();
  REQUIRE(first.lock() != nullptr);
  CHECK(first.lock() == second.lock());
  k.stores.close();
  CHECK(first.expired());
  CHECK(k.used().expired());  // as before keep()
}

TEST_CASE("of two stores the one that was opened last stays open") {
  kept_store k;
  const auto first = k.used();
  const std::string other = "local:" + (k.folder / "other").string();
  (void)store::open(other);
  const auto second = k.stores.in_store(other, [](const store& s) { return std::weak_ptr(s.core()); });
  CHECK(first.expired());
  CHECK_FALSE(second.expired());
}

TEST_CASE("a store that was removed meanwhile is not there any more, and one in its place is opened") {
  kept_store k;
  const std::string before = k.used().lock()->uuid();
  std::filesystem::remove_all(k.node);
  CHECK_THROWS_AS(k.used(), error);
  k.make();
  CHECK(k.used().lock()->uuid() != before);
}

TEST_CASE("a copy in place of the store is opened, with what is in it") {
  kept_store k;
  k.stores.in_store(k.url, [](const store& s) { s.mkdir("of the copy"); });
  std::filesystem::copy(k.node, k.folder / "copy", std::filesystem::copy_options::recursive);
  k.stores.in_store(k.url, [](const store& s) { s.mkdir("later"); });
  std::filesystem::remove_all(k.node);
  std::filesystem::rename(k.folder / "copy", k.node);
  k.stores.in_store(k.url, [](const store& s) {
    CHECK(s.exists("of the copy"));
    CHECK_FALSE(s.exists("later"));
  });
}

TEST_CASE("what fails in a store that nobody used is tried again in the store as it is now") {
  kept_store k;
  const auto first = k.used();
  int calls = 0;
  const auto second = k.stores.in_store(k.url, [&](const store& s) {
    if (++calls == 1) throw usage_error(errc::not_a_store, "another one by now");
    return std::weak_ptr(s.core());
  });
  CHECK(calls == 2);
  CHECK(first.expired());
  CHECK_FALSE(second.expired());
  // While a file is open, the store is the one that the file is in.
  const auto file = second.lock();
  CHECK_THROWS_AS(k.stores.in_store(k.url, [&](const store&) { throw usage_error(errc::busy, "once"); }), error);
  CHECK(k.used().lock() == file);
}
