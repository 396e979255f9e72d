// Random operations on a node whose disk fails now and then, and whose memory is short, beside a model of the file.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <future>
#include <map>
#include <random>
#include <set>

#include "failing_disk.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

using namespace ooc::testing;
using namespace ooc;

namespace {

using chunk_bytes = std::string;

/// What may stand in each chunk: after an operation that failed, what was there before or what should be there now.
struct modelled_chunks {
  std::vector<std::set<chunk_bytes>> may_be;
  std::set<std::uint64_t> may_be_torn;

  void resize(std::size_t n) { may_be.resize(n, {chunk_bytes(chunk_size, 'f')}); }
};

struct piece {
  std::uint64_t begin, bytes;
};

std::future<failure> started_with_memory(const std::function<void(completion)>& call) {
  const auto p = std::make_shared<std::promise<failure>>();
  auto result = p->get_future();
  call([p](const failure& f) {
    const has_memory here;
    p->set_value(f);
  });
  return result;
}

/// The disk does this in one round.
class moods {
 public:
  explicit moods(std::mt19937_64& random)
      : random_(random()), one_in_(between(random, 4, 60)), flushes_fail_(between(random, 0, 9) == 0) {}

  disk_answer operator()(disk_call c, int, std::size_t bytes) {
    const has_memory here;
    const std::lock_guard lock(mutex_);
    if (between(random_, 1, one_in_) != 1) return {};
    if (c == disk_call::flush && !flushes_fail_) return {};
    if (c == disk_call::flush) flush_failed_ = true;
    switch (between(random_, 0, 3)) {
      case 0: return {EIO, {}};
      case 1: return {c == disk_call::write || c == disk_call::lengthen ? ENOSPC : EIO, {}};
      case 2: return {c == disk_call::read || c == disk_call::write ? EINTR : 0, {}};
      default:
        // Sectors are written or not: the header of the checksums is one.
        if (bytes < 1024 || (c != disk_call::read && c != disk_call::write)) return {};
        return {0, between(random_, 1, bytes / 512 - 1) * 512};
    }
  }
  bool flush_failed() const { return flush_failed_; }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;
  const std::uint64_t one_in_;
  const bool flushes_fail_;
  bool flush_failed_ = false;
};

class failing_life {
 public:
  failing_life(std::uint64_t seed, local_node_options o) : random_(seed), options_(o) {
    shape_ = make_shape(31, {0, 1, 65536}, between(random_, 1, 60) * chunk_size - between(random_, 0, 4095), true,
                        {std::byte{'f'}});
    open();
    REQUIRE_FALSE(create(*node_, shape_));
    model_.resize(chunks());
  }

  void round(bool scarce) {
    std::uint64_t what = between(random_, 0, 9);
    {
      const auto mood = std::make_shared<moods>(random_);
      const failing_disk disk([mood](disk_call c, int fd, std::size_t n) { return (*mood)(c, fd, n); });
      std::optional<scarce_memory> little;
      if (scarce) little.emplace(static_cast<unsigned>(between(random_, 20, 400)), static_cast<unsigned>(random_()));
      if (what < 7)
        write_some();
      else if (what < 8)
        resize();
      else
        sync_all();
      if (mood->flush_failed()) what = 99;
    }
    if (what == 99 || between(random_, 0, 5) == 0) open();
    look();
  }

 private:
  std::uint64_t chunks() const { return (shape_->size + chunk_size - 1) / chunk_size; }

  void open() {
    node_.reset();
    node_ = open_local_node(folder_.path(), options_);
  }

  // Up to four writes at a time, of bytes that none shares, but of chunks that they do.
  void write_some() {
    const std::uint64_t writers = between(random_, 1, 4);
    std::vector<std::vector<piece>> of(writers);
    for (std::uint64_t at = between(random_, 0, shape_->size - 1); at < shape_->size;) {
      const bool whole = between(random_, 0, 2) == 0;
      if (whole) at = (at + chunk_size - 1) / chunk_size * chunk_size;
      if (at >= shape_->size) break;
      const std::uint64_t most = whole ? between(random_, 1, 20) * chunk_size : between(random_, 1, 9000);
      const std::uint64_t n = std::min(most, shape_->size - at);
      of[between(random_, 0, writers - 1)].push_back({at, n});
      at += n + (between(random_, 0, 1) == 0 ? 0 : between(random_, 0, 30000));
      if (between(random_, 0, 9) == 0) break;
    }
    std::vector<std::unique_ptr<aligned_bytes>> memory;
    std::vector<std::future<failure>> ends;
    std::vector<char> letters;
    for (std::uint64_t w = 0; w < writers; ++w) {
      letters.push_back(static_cast<char>('A' + next_letter_++ % 26));
      memory.push_back(std::make_unique<aligned_bytes>(chunks() * chunk_size + 8));
      std::memset(memory.back()->data(), letters.back(), memory.back()->size());
      request r;
      const std::uint64_t shift = between(random_, 0, 2) == 0 ? 8 : 0;
      for (const piece& p : of[w]) r.add(p.begin, p.begin + shift, p.bytes);
      ends.push_back(started_with_memory([&](completion done) {
        node_->write(shape_, 0, std::make_shared<const request>(r), memory.back()->data(), std::move(done));
      }));
    }
    for (std::uint64_t w = 0; w < writers; ++w) {
      const failure f = ends[w].get();
      for (const piece& p : of[w])
        for (std::uint64_t c = p.begin / chunk_size; c * chunk_size < p.begin + p.bytes; ++c) {
          auto& values = model_.may_be[c];
          std::set<chunk_bytes> then;
          for (chunk_bytes b : values) {
            if (f) then.insert(b);
            for (std::uint64_t at = std::max(p.begin, c * chunk_size);
                 at < std::min(p.begin + p.bytes, (c + 1) * chunk_size); ++at)
              b[at % chunk_size] = letters[w];
            then.insert(std::move(b));
          }
          // In which order pieces of one writer come to a chunk does not matter: it is written once.
          values = std::move(then);
          if (f) model_.may_be_torn.insert(c);
        }
    }
  }

  void resize() {
    const std::uint64_t old = shape_->size;
    auto next = std::make_shared<file_shape>(*shape_);
    next->size = between(random_, 1, 60) * chunk_size - between(random_, 0, 4095);
    const auto to = [&](const shape_ptr& s, std::uint64_t before) {
      return started_with_memory([&](completion done) { node_->resize(s, 0, before, std::move(done)); }).get();
    };
    const failure f = to(next, old);
    const std::uint64_t kept = std::min(old, next->size);
    if (!f) shape_ = next;
    const std::uint64_t chunks_now = chunks();
    const chunk_bytes fill(chunk_size, 'f');
    for (std::uint64_t c = 0; c < model_.may_be.size(); ++c) {
      if ((c + 1) * chunk_size <= kept || next->size >= old) continue;
      const std::uint64_t keep = c * chunk_size >= kept ? 0 : kept % chunk_size;
      std::set<chunk_bytes> then;
      for (const chunk_bytes& b : model_.may_be[c]) {
        if (f) then.insert(b);
        then.insert(b.substr(0, keep) + fill.substr(keep));
      }
      model_.may_be[c] = std::move(then);
      if (f) model_.may_be_torn.insert(c);
    }
    model_.resize(chunks_now);
    if (f) unsettled_ = next->size;
  }

  void sync_all() {
    (void)started_with_memory([&](completion done) { node_->sync(shape_, 0, std::move(done)); }).get();
  }

  // With a disk and memory that are well again.
  void look() {
    if (unsettled_ != 0) {
      const failure f = testing::resize(*node_, shape_, 0, std::exchange(unsettled_, 0));
      INFO(f.what);
      REQUIRE_FALSE(f);
    }
    aligned_bytes b(chunk_size);
    for (std::uint64_t c = 0; c < chunks(); ++c) {
      const std::uint64_t n = std::min(chunk_size, shape_->size - c * chunk_size);
      const failure f = testing::read(*node_, shape_, 0, request::contiguous(c * chunk_size, n), b.data());
      INFO("chunk " << c << ": " << f.what);
      if (f) {
        REQUIRE(model_.may_be_torn.contains(c));
        REQUIRE(f.what.find("torn") + f.what.find("cut short") != 2 * std::string::npos);
        std::memset(b.data(), 'w', chunk_size);
        const failure mended = testing::write(*node_, shape_, 0, request::contiguous(c * chunk_size, n), b.data());
        if (mended) {
          INFO(mended.what);
          REQUIRE(n < chunk_size);  // only a whole write mends it, so all of it must be the file's
          auto longer = std::make_shared<file_shape>(*shape_);
          longer->size = (c + 1) * chunk_size;
          REQUIRE_FALSE(testing::resize(*node_, longer, 0, shape_->size));
          shape_ = longer;
          REQUIRE_FALSE(testing::write(*node_, shape_, 0, request::contiguous(c * chunk_size, chunk_size), b.data()));
        }
        model_.may_be[c] = {chunk_bytes(chunk_size, 'w')};
        continue;
      }
      const chunk_bytes found(reinterpret_cast<const char*>(b.data()), n);
      chunk_bytes is;
      for (const chunk_bytes& m : model_.may_be[c])
        if (m.compare(0, n, found) == 0) is = m;
      INFO("it begins with '" << found.substr(0, 20) << "', the model has " << model_.may_be[c].size()
                              << " values, the first '" << model_.may_be[c].begin()->substr(0, 20) << "'");
      REQUIRE_FALSE(is.empty());
      model_.may_be[c] = {is};
    }
    model_.may_be_torn.clear();
  }

  std::mt19937_64 random_;
  const local_node_options options_;
  temporary_folder folder_;
  std::shared_ptr<served_node> node_;
  shape_ptr shape_;
  modelled_chunks model_;
  std::uint64_t unsettled_ = 0;  // the size that a resize that failed was to give
  unsigned next_letter_ = 0;
};

}  // namespace

TEST_CASE("a disk that fails amid random operations leaves every chunk as before or after, and the node of use") {
  const std::uint64_t seed = random_seed("failing_disk");
  for (unsigned life = 0; life < 24; ++life) {
    CAPTURE(life);
    failing_life l(seed + life, {.workers = 3, .staging = 64 << 10, .direct_io = life % 4 == 3, .io_uring = false});
    for (int round = 0; round < 25; ++round) {
      CAPTURE(round);
      l.round(false);
    }
  }
}

TEST_CASE("memory that is short amid random operations lets them fail, and nothing else") {
  const std::uint64_t seed = random_seed("scarce_memory");
  for (unsigned life = 0; life < 24; ++life) {
    CAPTURE(life);
    failing_life l(seed + life, {.workers = 3, .staging = 64 << 10, .direct_io = false, .io_uring = life % 2 == 1});
    for (int round = 0; round < 25; ++round) {
      CAPTURE(round);
      l.round(true);
    }
  }
}
