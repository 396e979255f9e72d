// A packed file: what the stripe objects of a packed array hold (docs/disk-format.md, "Packed arrays").
//
//     header | chunk | chunk | ... | table
//
// The header says where the table is, and the table how many bytes each chunk has.  Chunks are as packed_codec.hpp
// says; one that packing does not make shorter is as it was, and one that holds nothing but the fill value has no
// bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/chunked/chunked_dataset.hpp"
#include "storage/chunked/stored_chunks.hpp"
#include "storage/service/striped_file.hpp"
#include "storage/service/unpacking.hpp"

namespace ooc::storage {

/// The chunks of a packed file.  The table is read with the first of them.  Any thread may call.
class packed_file final : public stored_chunks {
 public:
  packed_file(std::shared_ptr<const striped_file> bytes, std::shared_ptr<const chunked_dataset> d);

  std::uint64_t most_stored() const noexcept override;
  stored read(std::uint64_t chunk, chunk_decoder& into) const override;
  failure failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading = true) const override;

 private:
  failure load_table() const OOC_REQUIRES(mutex_);
  failure find(std::uint64_t chunk, std::uint64_t& at, std::uint64_t& bytes) const;

  const std::shared_ptr<const striped_file> bytes_;
  const std::shared_ptr<const chunked_dataset> dataset_;
  mutable mutex mutex_;
  mutable std::vector<std::uint64_t> ends_ OOC_GUARDED_BY(mutex_);  ///< of each chunk in the file; empty: not read yet
};

/// The bytes of a packed file whose stripe objects may have more.  Throws integrity_error and io_error.
std::uint64_t bytes_of_packed_file(const striped_file& f, const chunked_dataset& d);

/// The unpacked_node_maker of stores.
std::shared_ptr<io_service> unpacked_node(const entry& e, std::shared_ptr<const striped_file> packed,
                                          std::uint64_t budget);

/// Writes a packed file.
struct packing {
  /// Reads so many bytes of what is to be packed, from this one on.
  std::function<void(std::uint64_t at, std::span<std::byte> to)> read;
  std::function<void(std::uint64_t at, std::span<const std::byte> bytes)> write;
  std::function<void(std::uint64_t bytes)> step;  ///< after each part, with its bytes before packing
  std::uint64_t most = 0;                         ///< bytes that the packed file may have
};
/// Packs all of the file, on all processors.  Returns the bytes of the packed file; 0: there would be more than may be,
/// and it is not whole.  What the functions of `p` throw ends it.
std::uint64_t pack_file(const chunked_dataset& d, std::uint64_t file_bytes, const packing& p);

}  // namespace ooc::storage
