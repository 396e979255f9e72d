// An I/O node whose stripe objects are objects of RADOS: the one node of a store in RADOS.
//
// A file is cut into objects of object_bytes() each, "<id>.<number>" in hexadecimal digits.  An object that is not
// there, and what is past the end of one, has the file's fill value.  Beside them the object "<id>" says how many bytes
// have been given to the file, and how often it was cut off (docs/disk-format.md, "Stores in RADOS").
//
// A strided request is one operation for each object that it touches (several from 512 regions on), all in flight.
// RADOS carries out an operation on one object as a whole: no write is torn inside of an object.  A write that is
// acknowledged is durable: every copy of it is stored.  Bytes are compared with checksums by RADOS, on their way and
// where they are stored.
//
// No two programs whose claims of a file exclude each other reach this at a time: who lost his claim without knowing
// has been shut out of the cluster (rados_pool::shut_out()).  So generations and claims of a file_shape do not count
// here, but `cuts` do, and generations where who has no claim writes to a file that is about to be moved.  A
// gateway_node, which has others' requests carried out, looks at both before.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "storage/layout/regions.hpp"
#include "storage/rados/rados_pool.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

/// Bytes of an object of a file with stripes of `sf` bytes: whole stripes, 4 MiB or the next multiple above.
constexpr std::uint64_t object_bytes(std::uint64_t sf) noexcept {
  constexpr std::uint64_t usual = 4 << 20;
  return (usual + sf - 1) / sf * sf;
}
/// Clusters refuse larger objects.
inline constexpr std::uint64_t most_object_bytes = 64 << 20;

class rados_node : public io_service {
 public:
  /// A read or write of these regions of the file, sorted, that end where it does or before.
  virtual void transfer(io_kind kind, const shape_ptr& file, std::vector<region> regions, std::byte* memory,
                        completion done) = 0;
};

std::shared_ptr<rados_node> make_rados_node(std::shared_ptr<rados_pool> pool);

}  // namespace ooc::storage
