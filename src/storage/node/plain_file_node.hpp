// A file that belongs to no store, as an I/O node with one file: requests are served from its bytes as they lie.
//
// There are no checksums, no undo log and no locks between processes (a process that opens the file may take one):
// what is read is what the file holds, and a write that a crash cuts short leaves old bytes, new ones,
// or some of each.  The file never changes its size: a request that reaches past its end, because
// somebody has cut it off meanwhile, fails with both sizes.
//
// Bytes on whole pages of the file, in memory that is aligned like them, go past the page cache where the file system
// can do that, as the transfers of a store do; all else goes through the page cache, byte by byte, so that only the
// bytes that the request names are ever written.  The kernel keeps the two in agreement.  Transfers are those of
// transfer.hpp: many at a time, by a few threads.
//
// Threads and completions as in io_service.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/base/file_descriptor.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct plain_file {
  std::string path;         ///< for messages
  file_descriptor file;     ///< through the page cache
  file_descriptor direct;   ///< past it; none: everything goes through it
  std::uint64_t begin = 0;  ///< where in the file the requests' byte 0 is
  bool writable = false;
};

/// A node of a file in place: answers what the file cannot be asked for.
class in_place_node : public io_service {
 public:
  void answer(node_call call, completion done) final;

 protected:
  /// io_kind::read, write or sync.
  virtual void carry_out(node_call call, completion done) = 0;
  failure refusal(const char* what) const;
};

struct plain_file_options {
  unsigned workers = 6;  ///< I/O threads; each runs one request at a time
  bool io_uring = true;  ///< use io_uring where the kernel allows it
};

std::shared_ptr<io_service> make_plain_file_node(std::shared_ptr<const plain_file> file,
                                                 const plain_file_options& options = {});

}  // namespace ooc::storage
