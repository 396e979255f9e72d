#include "runtime/block_file/superblock_source.hpp"

#include "runtime/blocks/diff.hpp"

namespace ooc::detail {

storage::request_ptr superblock_source::request_for(block_index b) const {
  auto r = std::make_shared<request>();
  r->add(blocking_.request_of(blocking_.superblock_box(b)));
  return r;
}

namespace {
storage::completion with_bytes(const request& r, block_source::completion done) {
  return [bytes = r.bytes(), done = std::move(done)](const failure& f) { done(f, bytes); };
}
}  // namespace

void superblock_source::load(block_index b, load_part part, std::byte* frame, completion done) {
  if (nothing_to_load(b, part)) return done({}, 0);
  const storage::request_ptr r = request_for(b);
  file_->read(r, frame, with_bytes(*r, std::move(done)));
}

void superblock_source::store(block_index b, const std::byte* frame, completion done) {
  const storage::request_ptr r = request_for(b);
  file_->write(r, frame, with_bytes(*r, std::move(done)));
}

void superblock_source::store_diff(block_index b, const std::byte* frame, const std::byte* twin, completion done) {
  const auto r =
      std::make_shared<const request>(changes(*request_for(b), static_cast<std::uint32_t>(blocking_.rs), frame, twin));
  file_->write(r, frame, with_bytes(*r, std::move(done)));
}

}  // namespace ooc::detail
