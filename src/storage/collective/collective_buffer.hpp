// One rank's window of an exchange: its bytes, which rank wants which of them, and their transfer.
//
// The transfer runs beside the exchange of another window.  Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "storage/base/in_flight.hpp"
#include "storage/collective/exchange_plan.hpp"
#include "storage/service/striped_file.hpp"

namespace ooc::storage {

/// The regions of all ranks as one request with memory offsets within the window: every byte of
/// them, and nothing else.  Regular regions take one entry, however many there are.
request request_of(const std::vector<std::vector<region>>& by_rank, std::uint64_t window_begin);
/// The same, with the gaps that a node would read anyway.
request request_with_gaps(const std::vector<std::vector<region>>& by_rank, std::uint64_t window_begin);

/// Held by shared_ptr: a transfer in flight keeps it, whatever becomes of the exchange.
class window : public std::enable_shared_from_this<window> {
 public:
  explicit window(std::uint64_t bytes);

  std::byte* bytes() noexcept { return bytes_.get(); }
  /// The regions of it that each rank wants, by rank.
  std::vector<std::vector<region>>& regions() noexcept { return regions_; }

  void start_read(const striped_file& f, std::uint64_t window_begin);
  void start_write(const striped_file& f, std::uint64_t window_begin);
  /// Waits for what was started last, if anything, and says how it ended.
  failure finish();
  /// The same for a read, with the regions that it was started for: where the disk could not be
  /// read, perhaps in a gap that nobody asked for, it tries once more without the gaps.
  failure finish_read(const striped_file& f, std::uint64_t window_begin);

 private:
  struct free_bytes {
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{4096}); }
  };

  void read(const striped_file& f, request r);

  std::unique_ptr<std::byte[], free_bytes> bytes_;
  std::vector<std::vector<region>> regions_;
  in_flight transfer_;  // of one at most
};

}  // namespace ooc::storage
