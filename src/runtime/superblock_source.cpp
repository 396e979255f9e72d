#include "runtime/superblock_source.hpp"

namespace ooc::detail {

storage::request_ptr superblock_source::request_for(block_index b) const {
  auto r = std::make_shared<request>();
  r->add(blocking_.request_of(blocking_.superblock_box(b)));
  return r;
}

void superblock_source::load(block_index b, load_part part, std::byte* frame, completion done) {
  if (nothing_to_load(b, part)) return done({});
  file_->read(request_for(b), frame, std::move(done));
}

void superblock_source::store(block_index b, const std::byte* frame, completion done) {
  file_->write(request_for(b), frame, std::move(done));
}

}  // namespace ooc::detail
