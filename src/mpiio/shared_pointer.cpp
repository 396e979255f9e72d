#include "mpiio/shared_pointer.hpp"

#include <cinttypes>
#include <cstdio>
#include <limits>
#include <utility>

#include "storage/base/refuse.hpp"
#include "storage/layout/stripe_choice.hpp"

namespace ooc::mpiio {

namespace {

constexpr const char* position_key = "position";
constexpr std::uint64_t greatest_position = std::numeric_limits<std::int64_t>::max();

std::string pointer_file(const std::string& path, std::uint64_t token) {
  const auto slash = path.find_last_of('/');
  char name[40];
  std::snprintf(name, sizeof name, ".shared-pointer-%016" PRIx64, token);
  return path.substr(0, slash + 1) + name;  // npos + 1 == 0
}

}  // namespace

shared_pointer::shared_pointer(std::shared_ptr<storage::store_core> core, const std::string& path, std::uint64_t token)
    : core_(std::move(core)), file_(pointer_file(path, token)) {}

// 0: nobody has made it.
storage::file_id shared_pointer::find() {
  const lock_guard lock(mutex_);
  if (id_ != 0) return id_;
  if (const auto e = lookup_if_there(core_->metadata(), file_)) id_ = e->id;
  return id_;
}

storage::file_id shared_pointer::find_or_make() {
  for (;;) {
    if (const auto id = find()) return id;
    try {
      storage::new_file f;
      f.striping = storage::with_stripe_size({}, {}, static_cast<std::uint32_t>(core_->nodes().size()));
      f.mode = 0600;
      (void)core_->create(file_, f);
    } catch (const error& e) {
      if (e.code() != std::errc::file_exists) throw;  // else another rank has made it meanwhile
    }
  }
}

std::uint64_t shared_pointer::read(storage::file_id id) {
  const auto attributes = core_->metadata().lookup(id).attributes;
  const auto at = attributes.find(position_key);
  return at == attributes.end() ? 0 : std::stoull(at->second);
}

void shared_pointer::write(storage::file_id id, std::uint64_t position) {
  core_->metadata().set_attribute(id, position_key, std::to_string(position));
}

std::uint64_t shared_pointer::advance(std::uint64_t bytes) {
  const auto id = find_or_make();
  const auto turn = core_->metadata().lock_size(id);
  const std::uint64_t before = read(id);
  if (bytes > greatest_position - before) refuse(errc::invalid_request, file_, "the position passes 2^63 - 1 bytes");
  write(id, before + bytes);
  return before;
}

void shared_pointer::move_to(std::uint64_t position) {
  // OMPIO moves it to 0 at each view that is set: no file is made for that.
  const auto id = position == 0 ? find() : find_or_make();
  if (id == 0) return;
  const auto turn = core_->metadata().lock_size(id);
  write(id, position);
}

std::uint64_t shared_pointer::position() {
  const auto id = find();
  if (id == 0) return 0;
  const auto turn = core_->metadata().lock_size(id);
  return read(id);
}

void shared_pointer::remove() {
  const lock_guard lock(mutex_);
  id_ = 0;
  try {
    core_->remove(file_);
  } catch (const error& e) {
    if (e.code() != std::errc::no_such_file_or_directory) throw;
  }
}

}  // namespace ooc::mpiio
