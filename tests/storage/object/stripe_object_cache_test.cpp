#include "storage/object/stripe_object_cache.hpp"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <thread>

#include "support/node_fixture.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

// Descriptors of this process whose file's name has `text` in it.
std::size_t descriptors(const std::string& text) {
  std::size_t n = 0;
  for (const auto& e : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    n += fs::read_symlink(e.path(), gone).string().find(text) != std::string::npos;
  }
  return n;
}

struct descriptor_limit {
  explicit descriptor_limit(rlim_t n) {
    ::getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit less = before;
    less.rlim_cur = n;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &less) == 0);
  }
  ~descriptor_limit() { ::setrlimit(RLIMIT_NOFILE, &before); }
  struct rlimit before {};
};

const striping whole{.sn = 0, .nn = 1, .sf = 65536};
const local_node_options simple{.workers = 1, .io_uring = false};

file_id id_of(unsigned i) { return i + 1; }

object_identity identity(unsigned i) { return identity_of({}, *make_shape(id_of(i), whole, 4096), 0); }

void make(served_node& n, file_id id) {
  const shape_ptr f = make_shape(id, whole, 4096);
  REQUIRE_FALSE(create(n, f));
  aligned_bytes memory(4096);
  std::fill_n(memory.data(), 4096, std::byte{7});
  REQUIRE_FALSE(write(n, f, 0, request::contiguous(0, 4096), memory.data()));
}

}  // namespace

TEST_CASE("any number of small files can be made one after another with few descriptors") {
  temporary_folder folders[4];
  const descriptor_limit few(160);
  std::vector<std::shared_ptr<served_node>> nodes;
  for (const auto& f : folders) nodes.push_back(open_local_node(f.path(), simple));
  for (unsigned i = 0; i < 60; ++i)  // three times as many descriptors as there may be
    for (const auto& n : nodes) make(*n, id_of(i));
}

TEST_CASE("a node closes stripe objects whose files another process removed") {
  temporary_folder folder;
  const auto mine = open_local_node(folder.path(), simple);
  make(*mine, id_of(1));
  {
    const auto other = open_local_node(folder.path(), simple);
    REQUIRE_FALSE(remove(*other, id_of(1)));
  }
  CHECK(descriptors(folder.path().string()) > 0);
  make(*mine, id_of(2));
  CHECK(descriptors("(deleted)") == 0);
}

TEST_CASE("a node that has nothing to do gives back the space of what another process removed") {
  temporary_folder folder;
  const auto mine = open_local_node(folder.path(), simple);
  make(*mine, id_of(1));
  {
    const auto other = open_local_node(folder.path(), simple);
    REQUIRE_FALSE(remove(*other, id_of(1)));
  }
  CHECK(soon([] { return descriptors("(deleted)") == 0; }));
}

TEST_CASE("a stripe object whose opening takes long holds up nobody who wants another") {
  temporary_folder folder;
  {
    const auto n = open_local_node(folder.path(), simple);
    make(*n, id_of(1));
    make(*n, id_of(2));
  }
  const node_folder where(folder.path());
  change_boot(folder.path(), id_of(1));  // its undo journal is to be replayed, under its lock
  const checksum_file sums = open_sums(folder.path(), id_of(1));
  range_locks locks(sums.fd());
  stripe_object_cache cache(where, false);
  std::shared_ptr<stripe_object> slow, again, other;
  int slow_error = -1, again_error = -1;
  std::string why[3];
  std::thread first, second;
  {
    range_locks::hold hold;
    REQUIRE(locks.lock_object(hold) == 0);
    first = std::thread([&] { slow_error = cache.get(identity(1), slow, why[0]); });
    second = std::thread([&] { again_error = cache.get(identity(1), again, why[1]); });
    CHECK(soon([&] { return descriptors(where.data(id_of(1)).filename().string()) != 0; }));
    CHECK(cache.get(identity(2), other, why[2]) == 0);
    CHECK(other);
  }
  first.join();
  second.join();
  CHECK(slow_error == 0);
  CHECK(again_error == 0);
  CHECK(slow == again);  // one object for one file
}
