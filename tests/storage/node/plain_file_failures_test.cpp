// A file in place whose node has little memory now and then.
#include <fcntl.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <optional>
#include <random>

#include "failing_disk.hpp"
#include "storage/node/plain_file_node.hpp"
#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

/// A file beside a model of it.  What a request that failed was given stays here, to be found as it was left.
class scarce_life {
 public:
  scarce_life(std::uint64_t seed, bool io_uring)
      : random_(seed), io_uring_(io_uring), path_(folder_.path() / "in_place"), model_(size, 'f') {
    std::ofstream(path_) << model_;
    open();
  }

  void round() {
    if (between(random_, 0, 9) == 0) open();
    const bool writes = between(random_, 0, 1) == 0;
    request r;
    std::string next = model_;
    const char letter = static_cast<char>('A' + between(random_, 0, 25));
    for (std::uint64_t at = between(random_, 0, size / 2); at < size;) {
      const std::uint64_t n = std::min(between(random_, 1, 300), size - at);
      r.add(at, at, n);
      next.replace(at, n, n, letter);
      at += n + between(random_, 0, 300);
    }
    auto memory = std::make_unique<aligned_bytes>(size);
    std::memset(memory->data(), writes ? letter : untouched, size);
    const auto wanted = std::make_shared<const request>(r);
    failure f;
    {
      std::optional<scarce_memory> little;
      if (between(random_, 0, 1) == 0)
        little.emplace(static_cast<unsigned>(between(random_, 2, 40)), static_cast<unsigned>(random_()));
      f = wait_for([&](completion done) {
        // The answer's way to this thread needs memory of its own.
        const auto told = [done = std::move(done)](const failure& e) {
          const has_memory here;
          done(e);
        };
        if (writes)
          node_->write(shape_, 0, wanted, memory->data(), told);
        else
          node_->read(shape_, 0, wanted, memory->data(), told);
      });
    }
    INFO(f.what);
    if (f) REQUIRE(f.code == std::errc::not_enough_memory);
    for (const auto& [given, left] : of_failed_) REQUIRE(std::memcmp(given->data(), left.data(), size) == 0);
    if (!writes && !f)
      r.for_each_run([&](std::uint64_t at, std::uint64_t, std::uint64_t n) {
        REQUIRE(std::memcmp(memory->data() + at, model_.data() + at, n) == 0);
      });
    look(next, writes, !f);
    // As if somebody else had the memory of a request that has failed.
    if (f) {
      std::memset(memory->data(), others, size);
      of_failed_.emplace_back(std::move(memory), std::string(size, others));
    }
  }

 private:
  static constexpr std::uint64_t size = 100'000;
  static constexpr char untouched = '-', others = '#';

  void open() {
    auto file = std::make_shared<storage::plain_file>();
    file->path = path_;
    file->file = storage::file_descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    file->writable = true;
    node_ = make_plain_file_node(file, {.workers = 1, .io_uring = io_uring_});
  }

  // After a write that has failed each byte is as before or as it should be, and stays so.
  void look(const std::string& next, bool written, bool whole) {
    std::ifstream in(path_, std::ios::binary);
    const std::string now{std::istreambuf_iterator<char>(in), {}};
    REQUIRE(now.size() == size);
    for (std::uint64_t i = 0; i < size; ++i)
      if (now[i] != (written && whole ? next[i] : model_[i]) && !(written && !whole && now[i] == next[i])) {
        INFO("byte " << i << " is '" << now[i] << "', was '" << model_[i] << "', was to become '" << next[i] << "'");
        REQUIRE(false);
      }
    model_ = now;
  }

  std::mt19937_64 random_;
  const bool io_uring_;
  temporary_folder folder_;
  const fs::path path_;
  std::string model_;
  const shape_ptr shape_ = make_shape(1, {0, 1, size}, size);
  std::shared_ptr<io_service> node_;
  std::vector<std::pair<std::unique_ptr<aligned_bytes>, std::string>> of_failed_;
};

}  // namespace

TEST_CASE("a request on a file in place that fails for want of memory leaves nothing for the next one to do") {
  const std::uint64_t seed = random_seed("scarce_memory_in_place");
  for (unsigned life = 0; life < 6; ++life) {
    CAPTURE(life);
    scarce_life l(seed + life, life % 2 == 1);
    for (int round = 0; round < 100; ++round) {
      CAPTURE(round);
      l.round();
    }
  }
}
