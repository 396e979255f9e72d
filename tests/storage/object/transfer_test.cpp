// Both transfer engines, on the same cases.
#include "storage/object/transfer.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "support/node_fixture.hpp"

using namespace ooc::testing;

namespace {

struct scratch_file {
  temporary_folder folder;
  file_descriptor fd{::open((folder.path() / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

std::byte value(std::size_t i) { return static_cast<std::byte>(i * 131 + i / 4096); }

}  // namespace

TEST_CASE("extents that continue each other are one, up to 2 MiB") {
  transfer_list list;
  bytes m(5 << 20);
  list.add(0, m.data(), 4096);
  list.add(4096, m.data() + 4096, 4096);
  CHECK(list.extents.size() == 1);
  CHECK(list.memory.size() == 1);
  list.add(8192, m.data() + 100000, 4096);  // elsewhere in memory
  CHECK(list.extents.size() == 1);
  CHECK(list.memory.size() == 2);
  list.add(20000, m.data(), 10);  // elsewhere in the file
  CHECK(list.extents.size() == 2);
  list.clear();
  list.add(0, m.data(), 5 << 20);
  REQUIRE(list.extents.size() == 3);
  CHECK(list.extents[1].offset == 2 << 20);
  CHECK(list.extents[2].bytes == 1 << 20);
  CHECK(list.end() == 5 << 20);
}

TEST_CASE("an extent has a bounded number of regions of memory") {
  transfer_list list;
  bytes m(4096);
  for (std::uint64_t i = 0; i < 2000; ++i) list.add(i, m.data(), 1);
  for (const transfer& t : list.extents) CHECK(t.count <= transfer_list::max_regions);
  CHECK(list.extents.size() == 4);
}

TEST_CASE("engines write and read many scattered extents") {
  for (const bool ring : {true, false}) {
    scratch_file f;
    const auto engine = make_transfer_engine(ring);
    bytes out(600 * 1000);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(i);
    transfer_list list;
    for (std::size_t i = 0; i < 600; ++i) {
      list.add(i * 2000, out.data() + i * 1000, 300);
      list.add(i * 2000 + 300, out.data() + i * 1000 + 600, 400);  // a second region of memory
    }
    REQUIRE(list.extents.size() == 600);
    engine->run(f.fd.get(), direction::write, list);
    for (const transfer& t : list.extents) {
      REQUIRE(t.error == 0);
      REQUIRE(t.complete());
    }
    bytes in(600 * 700);
    list.clear();
    for (std::size_t i = 0; i < 600; ++i) list.add(i * 2000, in.data() + i * 700, 700);
    engine->run(f.fd.get(), direction::read, list);
    for (std::size_t i = 0; i < 600; ++i) {
      REQUIRE(std::memcmp(&in[i * 700], &out[i * 1000], 300) == 0);
      REQUIRE(std::memcmp(&in[i * 700 + 300], &out[i * 1000 + 600], 400) == 0);
    }
  }
}

TEST_CASE("a read past the end of the file delivers zeros") {
  for (const bool ring : {true, false}) {
    scratch_file f;
    REQUIRE(::pwrite(f.fd.get(), "abc", 3, 0) == 3);
    const auto engine = make_transfer_engine(ring);
    bytes in(20, std::byte{7});
    transfer_list list;
    list.add(0, in.data(), 5);
    list.add(5, in.data() + 10, 5);
    list.add(100, in.data() + 15, 5);
    engine->run(f.fd.get(), direction::read, list);
    for (const transfer& t : list.extents) CHECK(t.error == 0);
    CHECK(std::memcmp(in.data(), "abc\0\0\7\7\7\7\7\0\0\0\0\0\0\0\0\0\0", 20) == 0);
  }
}

TEST_CASE("a failed extent keeps its error and the others succeed") {
  for (const bool ring : {true, false}) {
    scratch_file f;
    const auto engine = make_transfer_engine(ring);
    bytes m(10, std::byte{1});
    transfer_list list;
    list.add(0, m.data(), 10);
    list.add(100, reinterpret_cast<std::byte*>(1), 10);  // no such memory
    list.add(200, m.data(), 10);
    engine->run(f.fd.get(), direction::write, list);
    CHECK(list.extents[0].error == 0);
    CHECK(list.extents[1].error == EFAULT);
    CHECK(list.extents[2].error == 0);
    // A second run repeats only what is not complete.
    list.extents[1].error = 0;
    list.memory[1].iov_base = m.data();
    REQUIRE(::ftruncate(f.fd.get(), 0) == 0);
    engine->run(f.fd.get(), direction::write, list);
    CHECK(list.extents[1].complete());
    struct stat st {};
    REQUIRE(::fstat(f.fd.get(), &st) == 0);
    CHECK(st.st_size == 110);
  }
}

TEST_CASE("an interrupted or short transfer goes on where it stopped") {
  transfer t{1000, 100, 0, 0, 2, 0};
  bytes m(200);
  std::vector<iovec> memory{{m.data(), 60}, {m.data() + 100, 40}};
  CHECK(continue_transfer(t, memory, direction::read, -EINTR));
  CHECK(continue_transfer(t, memory, direction::read, 70));
  CHECK(t.done == 70);
  CHECK(t.first == 1);
  CHECK(memory[1].iov_base == m.data() + 110);
  CHECK(memory[1].iov_len == 30);
  CHECK_FALSE(continue_transfer(t, memory, direction::read, 30));
  CHECK(t.complete());
  transfer w{0, 100, 0, 0, 1, 0};
  CHECK_FALSE(continue_transfer(w, memory, direction::write, 0));
  CHECK(w.error == EIO);
}
