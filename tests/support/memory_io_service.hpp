// A test double: an I/O node whose stripe objects are byte vectors.
//
// It is written for plainness, byte by byte from the definition of striping, so that it can stand
// as the reference for the real node.  Completions are called before the call returns,
// but for those of reads that it holds. Thread-safe where it holds none.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::testing {

using namespace ooc::storage;

class memory_io_service final : public io_service {
 public:
  explicit memory_io_service(std::string name = "memory") : name_(std::move(name)) {}

  void answer(node_call call, completion done) override;

  std::string name() const override { return name_; }
  io_stats stats() const override;
  std::uint64_t staging_bytes() const override { return 1000; }

  /// From now on `call` fails with `code`, until heal().
  void fail(io_kind call, std::error_code code);
  void heal();
  /// From now on reads are answered by answer_read() only.
  void hold_reads() { holding_ = true; }
  bool holds_read() const { return held_ != nullptr; }
  void answer_read() { std::exchange(held_, nullptr)(); }
  /// Bytes that all shares together may reserve.
  void set_capacity(std::uint64_t bytes);

  /// The bytes of a stripe object that were ever written, from its beginning.
  std::vector<std::byte> object(file_id id) const;
  std::set<file_id> objects() const;
  /// Length and stripe object offset of each region of the last read or write, neighbours joined.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> last_regions() const;

 private:
  struct object_data {
    std::uint64_t reserved = 0;
    std::vector<std::byte> bytes;  // shorter than the stripe object where the rest was never written
    std::map<std::uint64_t, std::vector<std::byte>> commits;  // by their numbers; before the first there is nothing
  };

  failure carry_out(const node_call& c);
  failure transfer(const node_call& c, object_data& object);
  failure create(const file_shape& file, std::uint64_t bytes);
  failure resize(const node_call& c);
  template <class F>
  failure for_each_byte(const node_call& c, F&& f);

  mutable std::mutex mutex_;
  std::string name_;
  std::map<file_id, object_data> objects_;
  std::map<io_kind, std::error_code> failing_;
  std::uint64_t capacity_ = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> last_regions_;
  io_stats stats_;
  bool holding_ = false;
  std::function<void()> held_;
};

}  // namespace ooc::testing
