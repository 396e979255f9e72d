// An I/O node as a server of it uses it: reads and writes in parts, with their checksums, on behalf of clients who take
// turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/layout/io_part.hpp"
#include "storage/service/io_service.hpp"
#include "storage/service/request_scheduler.hpp"

namespace ooc::storage {

/// The side that finds out whether the bytes are good.
enum class checking {
  here,       ///< every chunk is compared with its checksum
  by_caller,  ///< whole chunks are delivered with their checksum, for the caller to compare
};

class served_node : public io_service {
 public:
  /// The same node; what is asked of the result is done for `origin`.  Lives no longer than the node.
  virtual std::shared_ptr<served_node> on_behalf_of(request_origin origin) = 0;

  struct load {
    std::uint64_t waiting = 0;  ///< requests that no thread has begun
    std::uint64_t running = 0;
  };
  virtual load present_load() const = 0;

  /// Reads a part to `memory`, and its checksums to `sums`.  Where `who` is by_caller, chunks that
  /// no writer is busy with are not compared with their checksums: the receiver must.
  virtual void read_part(shape_ptr file, std::uint32_t stripe_index, io_part part, std::byte* memory,
                         std::uint32_t* sums, checking who, completion done) = 0;
  /// The same at once, in the calling thread and without waiting, by_caller; false where that cannot
  /// be (small_reads.hpp).
  virtual bool read_inline(const file_shape& file, std::uint32_t stripe_index, const io_part& part, std::byte* memory,
                           std::uint32_t* sums) = 0;
  /// For servers, which learn it late: the UUID of the store, before the first operation on a stripe object.
  virtual void set_store(const std::string& uuid) = 0;
  /// Writes a part whose checksums are `sums`; EBADMSG, with nothing written, where they do not
  /// belong to the bytes.
  virtual void write_part(shape_ptr file, std::uint32_t stripe_index, io_part part, const std::byte* memory,
                          const std::uint32_t* sums, completion done) = 0;
};

}  // namespace ooc::storage
