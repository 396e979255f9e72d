// The metadata service of a store that is one file in place: an entry that never changes.
//
// The entry is made up when the file is opened (file_in_place.cpp); nothing is kept beside the file, so all that
// would change the name space, the size or the attributes is refused with errc::invalid_request.  Claims are
// open-file-description locks of the whole file: a writer alone has the exclusive one; readers, and writers
// together, share it.  In a store readers need no claim, as chunks and checksums tell half of a write from a whole
// one; here nothing does.
//
// Threads as in metadata_service.hpp.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

#include "storage/node/plain_file_node.hpp"
#include "storage/service/metadata_service.hpp"

namespace ooc::storage {

/// Of a file with so many bytes of elements.
entry entry_in_place(const struct ::stat& s, std::string path, std::uint64_t bytes);

[[noreturn]] void refuse_in_place(const entry& e, const char* what);

class single_file final : public metadata_service {
 public:
  single_file(entry e, std::shared_ptr<const plain_file> file) : entry_(std::move(e)), file_(std::move(file)) {}

  metadata_answer answer(const metadata_call& call) override;
  size_lock_ptr lock_size(file_id) override { refuse_in_place(entry_, "be resized"); }
  std::shared_ptr<void> claim_writer(file_id, bool together, claim_holder* in_the_way) override;
  std::shared_ptr<void> claim_reader(file_id, claim_holder* in_the_way) override;

 private:
  entry found(const place& where) const;
  std::shared_ptr<void> lock(short type, const char* doing, claim_holder* in_the_way);

  const entry entry_;
  const std::shared_ptr<const plain_file> file_;
};

}  // namespace ooc::storage
