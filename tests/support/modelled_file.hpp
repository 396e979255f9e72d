// A file on nodes of any kind beside the same file in memory, and a random life for both.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "support/node_fixture.hpp"
#include "support/random_seed.hpp"

namespace ooc::testing {

inline bytes pattern(std::size_t n) {
  bytes b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>(i * 37 + 11);
  return b;
}

/// Opens the node in a folder; called again after the node it gave has been dropped.
using node_opener = std::function<std::shared_ptr<io_service>(const fs::path&)>;

// A file of `size` bytes as it should be, and the same file on a node per stripe index.
class modelled_file {
 public:
  modelled_file(shape_ptr shape, node_opener open_node) : shape_(std::move(shape)), open_node_(std::move(open_node)) {
    for (std::uint32_t t = 0; t < shape_->striping.nn; ++t) folders_.push_back(std::make_unique<temporary_folder>());
    open();
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) REQUIRE_FALSE(create(*nodes_[t], shape_, t));
    contents_ = committed_ = filled(shape_->size);
  }

  void open() {
    nodes_.clear();
    for (auto& f : folders_) nodes_.push_back(open_node_(f->path()));
  }

  bytes filled(std::uint64_t size) const {
    bytes b(size);
    if (!shape_->fill.empty())
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = shape_->fill[i % shape_->fill.size()];
    return b;
  }

  void write(const request& r, std::byte* memory) {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
      const failure f = ooc::testing::write(*nodes_[t], shape_, t, r, memory);
      INFO(f.what);
      REQUIRE_FALSE(f);
    }
    r.for_each_run([&](std::uint64_t file, std::uint64_t m, std::uint64_t n) {
      std::memcpy(contents_.data() + file, memory + m, n);
    });
  }

  void check(const request& r, std::byte* memory) {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
      const failure f = ooc::testing::read(*nodes_[t], shape_, t, r, memory);
      INFO(f.what);
      REQUIRE_FALSE(f);
    }
    r.for_each_run([&](std::uint64_t file, std::uint64_t m, std::uint64_t n) {
      INFO("file offset " << file << ", " << n << " bytes");
      REQUIRE(std::memcmp(contents_.data() + file, memory + m, n) == 0);
    });
  }

  void resize(std::uint64_t size) {
    auto next = std::make_shared<file_shape>(*shape_);
    const std::uint64_t old = next->size;
    next->size = size;
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
      const failure f = ooc::testing::resize(*nodes_[t], next, t, old);
      INFO(f.what);
      REQUIRE_FALSE(f);
    }
    shape_ = next;
    bytes b = filled(size);
    std::copy_n(contents_.begin(), std::min(size, old), b.begin());
    contents_.swap(b);
  }

  void verify() {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
      const auto [f, report] = ooc::testing::verify(*nodes_[t], shape_, t);
      REQUIRE_FALSE(f);
      REQUIRE(report.corrupt == 0);
      REQUIRE(report.torn == 0);
      REQUIRE(report.problems.empty());
    }
  }

  void sync() {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) REQUIRE_FALSE(ooc::testing::sync(*nodes_[t], shape_, t));
  }

  std::uint64_t size() const { return shape_->size; }
  bool has_commits() const { return shape_->commits; }
  bool is_sparse() const { return shape_->sparse; }

  void prepare() {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) succeed(ooc::testing::prepare(*nodes_[t], shape_, t));
  }

  void commit() {
    prepare();
    change([](file_shape& f) { ++f.commit; });
    committed_ = contents_;
  }
  void trim() {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t)
      if (shape_->striping.object_size(t, shape_->size) != 0) succeed(ooc::testing::trim(*nodes_[t], shape_, t));
  }

  void roll_back() {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) succeed(ooc::testing::roll_back(*nodes_[t], shape_, t));
    contents_ = committed_;
    change([&](file_shape& f) { f.size = contents_.size(); });
  }

  /// The bytes that a reader of the last commit sees.
  void check_committed(std::byte* memory) { check_all_of(last_commit(), memory); }

  /// The bytes that another file gets from the last commit.
  void check_clone(std::byte* memory) {
    const shape_ptr from = last_commit();
    auto plain = std::make_shared<file_shape>(*from);
    plain->id = clone_id;
    plain->commits = plain->at_commit = false;
    plain->sparse = true;
    const shape_ptr into = plain;
    for (std::uint32_t t = 0; t < nodes_.size(); ++t) {
      if (from->striping.object_size(t, from->size) == 0) continue;
      succeed(create(*nodes_[t], into, t));
      succeed(clone(*nodes_[t], from, t, into, true));
      succeed(ooc::testing::sync(*nodes_[t], into, t));
      const auto [f, report] = ooc::testing::verify(*nodes_[t], into, t);
      succeed(f);
      REQUIRE(report.corrupt + report.torn + report.lost == 0);
    }
    check_all_of(into, memory);
    for (std::uint32_t t = 0; t < nodes_.size(); ++t)
      if (from->striping.object_size(t, from->size) != 0) succeed(remove(*nodes_[t], into->id));
  }

 private:
  static constexpr file_id clone_id = 4711;

  shape_ptr last_commit() const {
    auto at_commit = std::make_shared<file_shape>(*shape_);
    at_commit->at_commit = true;
    at_commit->size = committed_.size();
    return at_commit;
  }
  void check_all_of(const shape_ptr& f, std::byte* memory) {
    for (std::uint32_t t = 0; t < nodes_.size(); ++t)
      if (f->striping.object_size(t, f->size) != 0)  // of a short copy not each has one
        succeed(ooc::testing::read(*nodes_[t], f, t, request::contiguous(0, committed_.size()), memory));
    REQUIRE(std::memcmp(committed_.data(), memory, committed_.size()) == 0);
  }
  static void succeed(const failure& f) {
    INFO(f.what);
    REQUIRE_FALSE(f);
  }
  template <class F>
  void change(F f) {
    auto next = std::make_shared<file_shape>(*shape_);
    f(*next);
    shape_ = next;
  }

  shape_ptr shape_;
  node_opener open_node_;
  std::vector<std::unique_ptr<temporary_folder>> folders_;
  std::vector<std::shared_ptr<io_service>> nodes_;
  bytes contents_;
  bytes committed_;  ///< of a file with commits
};

// A request without overlaps that fits the file, and the size of memory it needs.
template <class Engine>
request random_request(Engine& random, std::uint64_t size) {
  request r;
  const std::uint64_t kind = between(random, 0, 3);
  if (kind == 0) {  // aligned
    const std::uint64_t first = between(random, 0, size / 4096 - 1);
    const std::uint64_t n = between(random, 1, std::min<std::uint64_t>(size / 4096 - first, 300));
    r.add(first * 4096, 0, n * 4096);
  } else if (kind == 1) {  // anything
    const std::uint64_t first = between(random, 0, size - 1);
    r.add(first, between(random, 0, 1) * 8, between(random, 1, std::min<std::uint64_t>(size - first, 40000)));
  } else {  // strided, perhaps nested
    nested_request n;
    n.run = kind == 2 ? between(random, 1, 3000) : 4096 * between(random, 1, 3);
    n.depth = 2;
    n.levels[1] = {between(random, 1, 12), n.run + between(random, 0, 2) * (kind == 2 ? 1111 : 4096), n.run};
    n.levels[0] = {between(random, 1, 4), n.levels[1].count * n.levels[1].file_step + 4096 * between(random, 0, 9),
                   n.levels[1].count * n.run};
    const std::uint64_t reach = n.levels[0].count * n.levels[0].file_step;
    if (reach > size) return request::contiguous(0, size);
    n.file_offset = between(random, 0, size - reach);
    if (kind == 3) n.file_offset = n.file_offset / 4096 * 4096;
    r.add(n);
  }
  return r;
}

inline void random_life(const shape_ptr& shape, const node_opener& open_node, int operations, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  modelled_file file(shape, open_node);
  aligned_bytes memory(std::max<std::size_t>(4 << 20, (shape->size + chunk_size) / chunk_size * chunk_size));
  for (int i = 0; i < operations; ++i) {
    CAPTURE(i, seed);
    if (file.has_commits() && between(random, 0, 3) == 0) {
      const std::uint64_t which = between(random, 0, 11);
      if (which < 4) {
        file.commit();
        if (file.is_sparse() && which < 2) file.trim();
      } else if (which < 5)
        file.prepare();  // and nothing comes of it
      else if (which < 7)
        file.roll_back();
      else if (which < 9)
        file.check_clone(memory.data());
      else
        file.check_committed(memory.data());
    }
    const std::uint64_t what = between(random, 0, 99);
    if (what < 45) {
      const std::uint64_t start = random();
      for (std::size_t b = 0; b < memory.size(); b += 8) {
        const std::uint64_t v = start + b * 0x9e3779b97f4a7c15;
        std::memcpy(&memory[b], &v, 8);
      }
      file.write(random_request(random, file.size()), memory.data());
    } else if (what < 92) {
      file.check(random_request(random, file.size()), memory.data());
    } else if (what < 94) {
      file.resize(between(random, 100000, shape->size));
    } else if (what < 96) {
      file.resize(shape->size);
    } else if (what < 98) {
      file.sync();
    } else {
      file.open();
    }
  }
  file.check(request::contiguous(0, file.size()), memory.data());
  file.verify();
}

}  // namespace ooc::testing
