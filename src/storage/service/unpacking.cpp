#include "storage/service/unpacking.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

std::string why_not_written(const entry& e, const std::string& name) {
  return name + " is packed (" + e.codec +
         "): open it for reading, or make it one to be written, with store::unpack() or `ooc unpack`";
}

shape_ptr unpacked_shape(const entry& e) {
  auto s = std::make_shared<file_shape>();
  s->id = e.id;
  s->striping = {0, 1, std::max<std::uint64_t>(1, e.size)};
  s->size = e.size;
  s->name = e.path;
  return s;
}

}  // namespace

void require_unpacked(const entry& e, std::string name) {
  if (e.codec.empty()) return;
  if (name.empty()) name = "'" + e.path + "'";
  refuse(EROFS, why_not_written(e, name));
}

unpacked_file::unpacked_file(entry e, std::shared_ptr<const striped_file> packed, unpacked_node_maker make)
    : entry_(std::move(e)), shape_(unpacked_shape(entry_)), packed_(std::move(packed)), make_(std::move(make)) {}

std::shared_ptr<io_service> unpacked_file::node(std::uint64_t budget) {
  const lock_guard lock(mutex_);
  if (!node_) node_ = make_(entry_, packed_, budget);
  return node_;
}

failure unpacked_file::refused_write() const {
  return {{EROFS, std::generic_category()}, why_not_written(entry_, "'" + entry_.path + "'")};
}

std::uint64_t unpacked_file::memory(std::uint64_t budget) { return node(budget)->staging_bytes(); }

void unpacked_file::read(request_ptr r, std::byte* memory, completion done) {
  if (r->file_end() > shape_->size)
    return done({errc::invalid_request, "reading '" + shape_->name + "': the request ends at byte " +
                                            std::to_string(r->file_end()) + ", the file at byte " +
                                            std::to_string(shape_->size)});
  std::shared_ptr<io_service> node;
  try {
    node = this->node();
  } catch (const error& e) {
    return done({e.code(), e.what()});
  }
  node->read(shape_, 0, std::move(r), memory, std::move(done));
}

std::shared_ptr<unpacked_file> unpacked_files::find(
    const entry& e, const std::function<std::shared_ptr<const striped_file>()>& open) const {
  const lock_guard lock(mutex_);
  std::weak_ptr<unpacked_file>& known = open_[e.id];
  if (auto f = known.lock()) return f;
  auto f = std::make_shared<unpacked_file>(e, open(), make_);
  known = f;
  std::erase_if(open_, [](const auto& one) { return one.second.expired(); });
  return f;
}

}  // namespace ooc::storage
