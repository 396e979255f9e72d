// A full disk.
#include <fcntl.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "storage/base/file_descriptor.hpp"
#include "support/node_fixture.hpp"
#include "support/small_space.hpp"

using namespace ooc::testing;
using namespace ooc;

TEST_CASE("creation on a full disk fails, says the sizes and leaves nothing behind") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool mounted) {
          auto node = open_local_node(folder.path());
          const failure e = create(*node, make_shape(1, {0, 1, 65536}, 64 << 20));
          EXPECT(is_full(e));
          EXPECT(e.what.find(folder.path().string()) != std::string::npos);
          EXPECT(e.what.find("plate/a") != std::string::npos);
          if (mounted) {
            EXPECT(e.what.find("67244032") != std::string::npos);  // data, sums, header
            EXPECT(e.what.find("available") != std::string::npos);
          }
          EXPECT(list(*node).second.empty());
          // The space is free again.
          EXPECT(!create(*node, make_shape(2, {0, 1, 65536}, 2 << 20)));
          return 0;
        }) == 0);
}

TEST_CASE("growing on a full disk fails and leaves the file as it was") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool) {
          auto node = open_local_node(folder.path());
          const shape_ptr small = make_shape(1, {0, 1, 65536}, 1 << 20);
          EXPECT(!create(*node, small));
          bytes b(1 << 20, std::byte{7});
          EXPECT(!write(*node, small, 0, request::contiguous(0, 1 << 20), b.data()));
          EXPECT(is_full(resize(*node, make_shape(1, {0, 1, 65536}, 64 << 20), 0, 1 << 20)));
          bytes c(1 << 20);
          EXPECT(!read(*node, small, 0, request::contiguous(0, 1 << 20), c.data()));
          EXPECT(b == c);
          EXPECT(!resize(*node, make_shape(1, {0, 1, 65536}, 2 << 20), 0, 1 << 20));
          return 0;
        }) == 0);
}

TEST_CASE("a disk that fills up amid a write leaves every chunk readable, old or new") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool) {
          auto node = open_local_node(folder.path());
          const shape_ptr f = make_shape(1, {0, 1, 65536}, 16 << 20, true);
          EXPECT(!create(*node, f));
          aligned_bytes m(16 << 20);
          std::fill_n(m.data(), m.size(), std::byte{1});
          EXPECT(!write(*node, f, 0, request::contiguous(0, 1 << 20), m.data()));
          std::fill_n(m.data(), m.size(), std::byte{2});
          const failure e = write(*node, f, 0, request::contiguous(0, 16 << 20), m.data());
          EXPECT(is_full(e));
          EXPECT(e.what.find("write of 'plate/a'") != std::string::npos);
          // Unaligned, through the bounce buffer.
          EXPECT(is_full(write(*node, f, 0, request::contiguous((12 << 20) + 5, 3 << 20), m.data())));
          const auto [failed, report] = verify(*node, f);
          EXPECT(!failed);
          EXPECT(report.corrupt == 0);
          EXPECT(report.torn == 0);
          EXPECT(!read(*node, f, 0, request::contiguous(0, 16 << 20), m.data()));
          for (std::uint64_t at = 0; at < m.size(); at += 4096) {
            EXPECT(std::all_of(&m[at], &m[at] + 4096, [&](std::byte b) { return b == m[at]; }));
            EXPECT(m[at] == std::byte{2} || m[at] == (at < 1 << 20 ? std::byte{1} : std::byte{0}));
          }
          return 0;
        }) == 0);
}

TEST_CASE("a file that is too large for the file system is told apart from one over a limit of the process") {
  temporary_folder folder;
  constexpr std::uint64_t huge = std::uint64_t{32} << 40;
  const auto says = [&](const char* what) {
    auto node = open_local_node(folder.path());
    const failure e = create(*node, make_shape(1, {0, 1, 65536}, huge, true));
    return e.code == std::errc::file_too_large && e.what.find(what) != std::string::npos;
  };
  const int limited = in_child([&] {
    const rlimit limit{small_space, small_space};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && says("a limit on file sizes is set (ulimit -f)") ? 0 : 1;
  });
  CHECK(limited == 0);
  const auto probe = folder.path() / "probe";
  const storage::file_descriptor fd(::open(probe.c_str(), O_RDWR | O_CREAT, 0600));
  if (::ftruncate(fd.get(), huge) == 0) return;  // on ext4 16 TiB are the most
  CHECK(says("the file system takes no file that large: spread it over more nodes"));
}
