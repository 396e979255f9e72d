// Random programs of the block layer: blocks of a file by coordinates, compared with a plain
// matrix.
#include <cstring>
#include <iostream>
#include <optional>

#include "attack/round.hpp"
#include "oocarray/block_file.hpp"
#include "oocarray/file.hpp"

namespace ooc::attack {

namespace {

class block_program {
 public:
  block_program(round& r, runtime& rt, const store& s, std::string path)
      : r_(r), rt_(rt), store_(s), path_(std::move(path)) {
    b_.rs = r.one_in(3) ? r.between(1, 40) : 8 * r.between(1, 4);
    const std::uint64_t dimensions = r.between(1, 3);
    for (std::uint64_t k = 0; k < dimensions; ++k) {
      b_.ne.push_back(r.between(1, dimensions == 1 ? 200 : 12));
      b_.nb.push_back(r.between(1, dimensions == 1 ? 40 : 6));
      b_.bf.push_back(r.between(1, 3));
    }
    b_.check();
    options_.shared = r.one_in(3);
    options_.max_superblocks = r.one_in(2) ? r.between(1, 8) : 0;
    options_.sparse = r.one_in(2);
    try {
      file_ = block_file::create(rt_, store_, path_, b_, options_);
    } catch (const usage_error&) {
      leaves_nothing();
      throw;
    }
    plain_.assign(b_.file_bytes(), std::byte{});
  }

  void run() {
    for (std::uint64_t n = r_.between(50, 250); n > 0; --n) {
      ++r_.counts().operations;
      one();
    }
    guard_.reset();
    for (int again = 0; again < 2; ++again) {
      compare_all();
      reopen();
    }
  }

 private:
  void leaves_nothing() const {
    try {
      file::open(store_, path_);
    } catch (const usage_error& e) {
      if (e.code() == std::errc::no_such_file_or_directory) return;
      throw;
    }
    throw finding(verdict::failed, "a file that could not be made is there");
  }

  block_coordinates any_block() {
    block_coordinates c;
    switch (b_.nb.size()) {
      case 1: c = {r_.between(0, b_.nb[0] - 1)}; break;
      case 2: c = {r_.between(0, b_.nb[0] - 1), r_.between(0, b_.nb[1] - 1)}; break;
      default: c = {r_.between(0, b_.nb[0] - 1), r_.between(0, b_.nb[1] - 1), r_.between(0, b_.nb[2] - 1)};
    }
    return c;
  }
  /// Calls f(offset in the file, offset in the packed block) for every run along dimension 1.
  template <class F>
  void rows_of(const block_coordinates& at, F&& f) const {
    const auto size = [&](std::size_t k, const std::vector<std::uint64_t>& v) { return k < v.size() ? v[k] : 1; };
    const std::uint64_t row = b_.ne[0] * b_.rs;
    const std::uint64_t x = at[0] * b_.ne[0];
    const std::uint64_t width = b_.ne[0] * b_.nb[0];
    const std::uint64_t height = size(1, b_.ne) * size(1, b_.nb);
    std::uint64_t packed = 0;
    for (std::uint64_t k = 0; k < size(2, b_.ne); ++k)
      for (std::uint64_t j = 0; j < size(1, b_.ne); ++j, packed += row) {
        const std::uint64_t y = (at.size() > 1 ? at[1] : 0) * size(1, b_.ne) + j;
        const std::uint64_t z = (at.size() > 2 ? at[2] : 0) * size(2, b_.ne) + k;
        f(((z * height + y) * width + x) * b_.rs, packed);
      }
  }
  std::vector<std::byte> expected(const block_coordinates& at) const {
    std::vector<std::byte> v(b_.block_bytes());
    rows_of(at, [&](std::uint64_t file, std::uint64_t packed) {
      std::memcpy(v.data() + packed, plain_.data() + file, b_.ne[0] * b_.rs);
    });
    return v;
  }
  void compare(const block_coordinates& at) {
    std::vector<std::byte> got(b_.block_bytes());
    file_->read_block(at, got);
    if (got != expected(at))
      throw finding(verdict::wrong, "block " + at.text() + " of records of " + std::to_string(b_.rs) +
                                        " bytes reads what nobody wrote");
  }
  void compare_all() {
    for (std::uint64_t z = 0; z < (b_.nb.size() > 2 ? b_.nb[2] : 1); ++z)
      for (std::uint64_t y = 0; y < (b_.nb.size() > 1 ? b_.nb[1] : 1); ++y)
        for (std::uint64_t x = 0; x < b_.nb[0]; ++x)
          compare(b_.nb.size() == 1   ? block_coordinates{x}
                  : b_.nb.size() == 2 ? block_coordinates{x, y}
                                      : block_coordinates{x, y, z});
  }
  std::vector<std::byte> any_bytes() {
    std::vector<std::byte> v(b_.block_bytes());
    const std::uint64_t kind = r_.between(0, 2);
    for (std::byte& x : v) x = std::byte(kind == 0 ? 0 : kind == 1 ? 7 : r_.dice()() >> 32);
    return v;
  }
  void remember(const block_coordinates& at, const std::vector<std::byte>& v) {
    rows_of(at, [&](std::uint64_t file, std::uint64_t packed) {
      std::memcpy(plain_.data() + file, v.data() + packed, b_.ne[0] * b_.rs);
    });
  }
  void write_through_guard(bool promise) {
    const block_coordinates at = any_block();
    try {
      guard_ = promise ? file_->overwrite(at) : file_->pin(at, access_mode::write);
    } catch (const usage_error& e) {
      if (e.code() != errc::budget_too_small) throw;
      ++r_.counts().refused;
      return;
    }
    const std::vector<std::byte> v = any_bytes();
    std::uint64_t packed = 0;
    for (std::uint64_t k = 0; k < (b_.ne.size() > 2 ? b_.ne[2] : 1); ++k)
      for (std::uint64_t j = 0; j < (b_.ne.size() > 1 ? b_.ne[1] : 1); ++j)
        for (std::uint64_t i = 0; i < b_.ne[0]; ++i, packed += b_.rs)
          std::memcpy(guard_.data() + i * guard_.stride(0) + (b_.ne.size() > 1 ? j * guard_.stride(1) : 0) +
                          (b_.ne.size() > 2 ? k * guard_.stride(2) : 0),
                      v.data() + packed, b_.rs);
    remember(at, v);
    if (r_.one_in(2)) guard_.reset();
  }
  void reopen() {
    guard_.reset();
    file_->close();
    options_.shared = r_.one_in(3);
    file_ = block_file::open(rt_, store_, path_, b_, options_);
  }

  void one() {
    switch (r_.between(0, 10)) {
      case 0:
      case 1:
      case 2: {
        const block_coordinates at = any_block();
        const std::vector<std::byte> v = any_bytes();
        file_->write_block(at, v);
        return remember(at, v);
      }
      case 3:
      case 4:
      case 5: return compare(any_block());
      case 6: return write_through_guard(false);
      case 7: return write_through_guard(true);
      case 8: {
        const std::uint64_t dirty = file_->dirty_superblocks();
        file_->writeback(r_.one_in(3) ? durable : durability::acknowledged);
        r_.counts().acknowledged_bytes += dirty * b_.superblock_bytes();
        return;
      }
      case 9:
        guard_.reset();
        file_->writeback();
        file_->invalidate();
        return file_->prefetch(any_block());
      case 10: return r_.one_in(2) ? reopen() : compare_all();
    }
  }

  round& r_;
  runtime& rt_;
  store store_;
  std::string path_;
  blocking b_;
  block_file_options options_;
  std::optional<block_file> file_;
  block_guard guard_;
  std::vector<std::byte> plain_;
};

}  // namespace

void block_programs(round& r) {
  store_options so;
  so.workers = 1;
  so.staging = 64_KiB;
  const store s = store::open("local:" + (r.folder() / "a").string() + "," + (r.folder() / "b").string(), so);
  runtime_options ro;
  ro.memory = 128_KiB + 4096 * r.between(40, 200);
  for (int n = 0;; ++n, ro.memory *= 2) {
    runtime rt{ro};
    try {
      return block_program(r, rt, s, "blocks" + std::to_string(n)).run();
    } catch (const usage_error& e) {
      if (e.code() != errc::budget_too_small || ro.memory > 64_MiB) throw;
      ++r.counts().refused;
    }
  }
}

}  // namespace ooc::attack
