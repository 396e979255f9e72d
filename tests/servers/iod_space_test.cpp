// A full disk on one of several I/O servers.
#include <catch2/catch.hpp>

#include "storage/service/striped_file.hpp"
#include "support/iod_fixture.hpp"
#include "support/modelled_file.hpp"
#include "support/small_space.hpp"

#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not support threads in forked children

using namespace ooc::testing;
using namespace ooc;

namespace {

constexpr std::uint64_t slab = 2 << 20;  // of a file on two nodes: 1 MiB on each

failure write_slab(const striped_file& file, std::uint64_t n, const bytes& data) {
  return file.write(request::contiguous(n * slab, slab), data.data() + n * slab);
}

failure remove_object(io_service& node, const shape_ptr& f) {
  return wait_for([&](completion done) { node.remove(f, std::move(done)); });
}

}  // namespace

TEST_CASE(
    "a full disk on one I/O server: the writer is told which, nothing acknowledged is lost, the "
    "others serve, and with room again writing goes on") {
  temporary_folder folder;
  CHECK(in_small_space(folder.path(), [&](bool mounted) {
          const test_signer signer;
          const temporary_folder roomy;
          iod::iod_options node_1;
          node_1.node = 1;
          running_iod full(signer, folder.path());
          running_iod fine(signer, roomy.path(), {"127.0.0.1:0"}, node_1);
          remote_node_options second = client_options(fine.addresses());
          second.index = 1;
          const striped_file::nodes nodes{open_remote_node(client_options(full.addresses())), open_remote_node(second)};
          const bytes data = pattern(16 * slab);

          const shape_ptr filler = granted(signer, 1, 1 << 20);
          EXPECT(!create(*nodes[0], filler));
          EXPECT(!write(*nodes[0], filler, 0, request::contiguous(0, 1 << 20), data.data()));

          const striped_file file(granted(signer, 2, data.size(), {0, 2, 65536}, true), nodes);
          EXPECT(!file.create_objects());
          failure stopped;
          std::uint64_t acknowledged = 0;
          while (!stopped && acknowledged < 16) {
            stopped = write_slab(file, acknowledged, data);
            acknowledged += !stopped;
          }
          EXPECT(is_full(stopped));
          EXPECT(acknowledged > 0);
          EXPECT(stopped.what.find("node 0 (" + full.addresses()[0] + ")") != std::string::npos);
          EXPECT(stopped.what.find("plate/a") != std::string::npos);

          bytes back(acknowledged * slab);
          EXPECT(!file.read(request::contiguous(0, back.size()), back.data()));
          EXPECT(std::equal(back.begin(), back.end(), data.begin()));
          for (std::uint32_t stripe_index = 0; stripe_index < 2; ++stripe_index) {
            const auto [failed, report] = verify(*nodes[stripe_index], file.shape_handle(), stripe_index);
            EXPECT(!failed);
            EXPECT(report.corrupt == 0);
          }

          const shape_ptr beside = granted(signer, 3, 1 << 20);
          EXPECT(!create(*nodes[1], beside));
          EXPECT(!write(*nodes[1], beside, 0, request::contiguous(0, 1 << 20), data.data()));

          if (!mounted) return 0;  // a limit on file sizes does not go away with another file
          EXPECT(!remove_object(*nodes[0], filler));
          EXPECT(!write_slab(file, acknowledged, data));
          back.resize((acknowledged + 1) * slab);
          EXPECT(!file.read(request::contiguous(0, back.size()), back.data()));
          EXPECT(std::equal(back.begin(), back.end(), data.begin()));
          return 0;
        }) == 0);
}

#endif
