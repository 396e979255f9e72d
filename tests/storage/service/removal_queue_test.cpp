#include "storage/service/removal_queue.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace ooc;
using namespace ooc::storage;

namespace {

entry file_number(file_id id) {
  entry e;
  e.id = id;
  return e;
}

/// Files that cannot be removed, and those that were.
struct disk {
  removal_queue queue{[this](std::vector<entry> files) {
    const lock_guard lock(m);
    std::vector<entry> left;
    for (entry& e : files)
      if (stuck.contains(e.id))
        left.push_back(std::move(e));
      else
        removed.insert(e.id);
    return left;
  }};
  mutex m;
  std::set<file_id> stuck, removed;

  std::set<file_id> gone() {
    const lock_guard lock(m);
    return removed;
  }
};

}  // namespace

TEST_CASE("a file that cannot be removed keeps no other, and has its turn again") {
  disk d;
  d.stuck = {2};
  for (file_id id : {1, 2, 3}) d.queue.add(file_number(id));
  CHECK(d.queue.finish());
  CHECK(d.gone() == std::set<file_id>{1, 3});
  {
    const lock_guard lock(d.m);
    d.stuck.clear();
  }
  CHECK(d.queue.finish());
  CHECK(d.gone() == std::set<file_id>{1, 2, 3});
  CHECK_FALSE(d.queue.finish());
}

TEST_CASE("who needs space is told where removing has freed none") {
  disk d;
  d.stuck = {1};
  d.queue.add(file_number(1));
  CHECK_FALSE(d.queue.finish());
  CHECK_FALSE(d.queue.finish());
  {
    const lock_guard lock(d.m);
    d.stuck.clear();
  }
  d.queue.add(file_number(2));
  CHECK(d.queue.finish());
  CHECK(d.gone() == std::set<file_id>{1, 2});
}
