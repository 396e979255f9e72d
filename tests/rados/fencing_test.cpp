// Who is kept from a store in RADOS, and how.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/rados/client_object.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/file_ranks.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/rados_pool.hpp"
#include "support/node_fixture.hpp"
#include "support/run_command.hpp"
#include "support/temporary_folder.hpp"

using namespace ooc;
using namespace std::chrono_literals;

namespace {

/// A pool as the tests reach it, and as another process would: with a deadline of its own it has a connection of its
/// own, which can be shut out.
struct two_processes {
  two_processes(const std::string& name, std::chrono::seconds deadline) {
    storage::rados_location where;
    where.pool = "ooc";
    where.name_space = name + "-" + std::to_string(::getpid());
    here = storage::rados_pool::connect(where);
    where.deadline = deadline;
    other = storage::rados_pool::connect(where);
  }
  bool other_is_shut_out() const {
    (void)here->get("by-other");  // so that the OSD has heard of it
    try {
      other->put("by-other", "");
    } catch (const io_error& e) {
      return e.code() == std::error_code(ESHUTDOWN, std::generic_category());
    }
    return false;
  }

  std::shared_ptr<storage::rados_pool> here, other;
};

testing::outcome ceph(const std::string& arguments) {
  const testing::temporary_folder folder;
  return testing::run_command("ceph " + arguments, folder / "ceph");
}

/// In the words of `ceph osd blocklist`.
std::string listed(const std::string& address) {
  const auto v2 = address.find("v2:");
  const auto begin = v2 == address.npos ? 0 : v2 + 3;
  return address.substr(begin, address.find_first_of(",]", begin) - begin);
}

}  // namespace

TEST_CASE("who was shut out stays out when the cluster has forgotten that, which it does a year later") {
  const two_processes p("for-good", 33s);
  const std::string address = p.other->address();
  p.here->shut_out({address});
  CHECK(p.other_is_shut_out());
  const auto list = ceph("osd blocklist ls");
  CAPTURE(address, list.out);
  const auto line = list.out.find(listed(address));
  REQUIRE(line != list.out.npos);
  const auto then = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()) + std::chrono::days(365);
  const std::string year = std::to_string(static_cast<int>(std::chrono::year_month_day(then).year()));
  CHECK_THAT(list.out.substr(line, list.out.find('\n', line) - line), Catch::Contains(" " + year + "-"));
  REQUIRE(ceph("osd blocklist rm " + listed(address)).status == 0);
  CHECK(p.other_is_shut_out());
  const auto node = storage::make_rados_node(p.other);
  CHECK(testing::create(*node, testing::make_shape(7, {0, 1, 65536}, 65536)).code ==
        std::error_code(ESHUTDOWN, std::generic_category()));
}

TEST_CASE("who claims a file shuts out the ranks that write it under a claim that ends with that, and no others") {
  const two_processes p("ranks", 31s);
  const auto node = storage::make_rados_node(p.here);
  auto shape = testing::make_shape(7, {0, 1, 65536}, 65536);
  REQUIRE_FALSE(testing::create(*node, shape));
  const auto open = [&](std::uint64_t generation, storage::write_claim claim) {
    auto s = std::make_shared<storage::file_shape>(*shape);
    s->generation = generation;
    s->claim = claim;
    REQUIRE_FALSE(testing::advance(*node, s));
  };
  const storage::rank_of_file rank{p.other, p.other, "rank"};
  storage::introduce_client(*p.here, "leader");
  open(2, {2, false});
  auto joined = join_file(rank, "leader", 7, {2, false});
  open(3, {3, false});  // both together
  joined.reset();
  open(4, {4, true});
  joined = join_file(rank, "leader", 7, {4, true});
  open(5, {4, true});  // a resize
  open(6, {});         // a sync
  CHECK_FALSE(p.other_is_shut_out());
  open(7, {7, true});
  CHECK(p.other_is_shut_out());
  storage::file_object now;
  in_flight one;
  one.start([&](auto ended) {
    storage::read_file_object(*p.here, 7, "a read", [&now, ended](int, const storage::file_object& found) {
      now = found;
      ended({});
    });
  });
  REQUIRE_FALSE(one.wait());
  CHECK(now.object != 0);
  CHECK(now.ranks.empty());
}

TEST_CASE("no rank joins a client that has ended, until that is there again") {
  const two_processes p("ended", 32s);
  const auto node = storage::make_rados_node(p.here);
  REQUIRE_FALSE(testing::create(*node, testing::make_shape(7, {0, 1, 65536}, 65536)));
  const auto is_refused = [&] {
    try {
      (void)storage::join_file({p.here, p.here, "rank"}, "leader", 7, {1, true});
    } catch (const io_error& e) {
      return e.code() == std::error_code(ESTALE, std::generic_category());
    }
    return false;
  };
  CHECK(is_refused());
  storage::introduce_client(*p.here, "leader");
  CHECK_FALSE(is_refused());
  CHECK(storage::end_client_object(*p.here, "leader") == p.here->address());
  CHECK(storage::end_client_object(*p.here, "leader") == p.here->address());
  CHECK(is_refused());
  storage::introduce_client(*p.here, "leader");
  CHECK_FALSE(is_refused());
}

TEST_CASE("who has lost the metadata to another takes nothing of the other's away when it ends") {
  const two_processes p("successor", 34s);
  const auto nothing = [](const storage::rados_possession&) {};
  auto first = storage::rados_possession::take(p.other, {"", true, {}}, nothing);
  const std::string address = p.other->address();
  const auto second = storage::rados_possession::take(p.here, {"", true, {}}, nothing);
  second->publish({"there:1"});
  REQUIRE(ceph("osd blocklist rm " + listed(address)).status == 0);  // as it is forgotten one day
  first.reset();
  CHECK(storage::find_rados_server(*p.here) == std::vector<std::string>{"there:1"});
}

TEST_CASE("hundreds are shut out in as many rounds of the monitors as one") {
  const two_processes p("many", 35s);
  const auto epoch = [] {
    const auto dump = ceph("osd stat");  // "...; epoch: e123"
    return std::stoul(dump.out.substr(dump.out.find("epoch: e") + 8));
  };
  std::vector<std::string> addresses{"", p.here->address()};
  for (int i = 0; i < 200; ++i) addresses.push_back("127.0.0.1:0/" + std::to_string(4'000'000'000 - i));
  const auto before = epoch();
  p.here->shut_out(addresses);
  const auto after = epoch();
  const auto list = ceph("osd blocklist ls").out;
  CHECK(list.find(addresses.back()) != list.npos);
  CHECK(after > before);
  CHECK(after <= before + 4);  // 32 at a time: 7
  p.here->put("here", "is not shut out");
}

TEST_CASE("an object is replaced by who has looked at what is there, and not behind another") {
  const two_processes p("replaced", 36s);
  std::vector<std::string> seen;
  const auto replace = [&](const std::string& by, const std::string& meanwhile) {
    seen.clear();
    storage::replace_object(*p.here, "place", by, [&](const std::string& before) {
      seen.push_back(before);
      if (seen.size() == 1 && !meanwhile.empty()) p.other->put("place", meanwhile);
    });
  };
  using strings = std::vector<std::string>;
  replace("a", "b");
  CHECK(seen == strings{"", "b"});
  replace("c", "d");
  CHECK(seen == strings{"a", "d"});
  replace("e", "");
  CHECK(seen == strings{"c"});
  CHECK(p.here->get("place") == "e");
}
