// What is stored of each chunk, wherever that is: chunks_by_table.hpp, chunks_in_files.hpp, chunks_in_shards.hpp and
// packed_file.hpp have it.
//
// Any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "oocarray/error.hpp"
#include "storage/chunked/chunk_decoder.hpp"

namespace ooc::storage {

/// Of chunks that can be written.
class chunk_writer {
 public:
  virtual ~chunk_writer() = default;

  /// Whether something is stored of it.
  virtual bool is_there(std::uint64_t chunk) = 0;
  /// This is stored of it from now on, all of it or, on failure, nothing.
  virtual failure write(std::uint64_t chunk, std::span<const std::byte> packed) = 0;
  /// All that was written so can be read by others.
  virtual failure publish() { return {}; }
  /// All that was published becomes durable.
  virtual failure sync() = 0;
};

class stored_chunks {
 public:
  virtual ~stored_chunks() = default;

  /// The most bytes that are read of a chunk.
  virtual std::uint64_t most_stored() const noexcept = 0;

  struct stored {
    failure why;                    ///< it could not be read, or its file is another one than it was
    std::uint64_t bytes = 0;        ///< in the decoder's memory; 0: it was never written
    std::uint32_t filter_mask = 0;  ///< as in file_chunk
  };
  virtual stored read(std::uint64_t chunk, chunk_decoder& into) const = 0;
  /// It will be read soon: the device may begin with it.
  virtual void will_read(std::uint64_t /*chunk*/) const noexcept {}

  /// An error about the chunk, which is named with its file, dataset and place.
  virtual failure failed(std::uint64_t chunk, std::error_code code, const std::string& why,
                         bool reading = true) const = 0;

  /// Null: they are only read.
  virtual chunk_writer* writer() noexcept { return nullptr; }
};

}  // namespace ooc::storage
