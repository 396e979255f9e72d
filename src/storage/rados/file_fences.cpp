#include "storage/rados/file_fences.hpp"

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "storage/rados/file_object.hpp"
#include "storage/rados/object_attributes.hpp"
#include "storage/rados/object_transfer.hpp"

namespace ooc::storage {

namespace {

constexpr const char* attribute = "oocarray.fence";
/// So many files are remembered; what is known of others is read again.
constexpr std::size_t most_known = 1 << 16;

/// "generation alone together"
std::string text_of(const file_fence& f) {
  return std::to_string(f.generation) + " " + std::to_string(f.claims.alone_since) + " " +
         std::to_string(f.claims.together_since);
}

bool parse(std::string_view text, file_fence& f) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::uint64_t* const number : {&f.generation, &f.claims.alone_since, &f.claims.together_since}) {
    const auto parsed = std::from_chars(at, end, *number);
    if (parsed.ec != std::errc()) return false;
    at = parsed.ptr + (parsed.ptr != end);
  }
  return at == end;
}

/// 0, or a negative errno.
int find_fence(object_attributes& of, file_fence& f) {
  std::optional<std::string> text;
  if (const int rc = of.find(attribute, text); rc < 0) return rc;
  return !text || parse(*text, f) ? 0 : -EBADMSG;  // without one no array has ever been opened for writing
}

}  // namespace

void file_fences::enter(const shape_ptr& file, turn what, entered go) {
  bool first = false;
  {
    const lock_guard lock(mutex_);
    if (files_.size() > most_known) std::erase_if(files_, [](const auto& f) { return f.second.is_idle(); });
    state& s = files_[file->id];
    s.waiting.push_back({what, std::move(go)});
    first = !s.known && !s.being_read;
    s.being_read |= first;
  }
  if (first) return read(file);
  admit(file->id);
}

void file_fences::read(const shape_ptr& file) {
  const auto a = std::make_shared<object_attributes>(pool_->calls());
  pool_->read(
      object_name(file->id), 0, described(io_kind::write, *file), [a](rados_read_op_t op) { a->read_by(op); },
      [self = shared_from_this(), a, file](int rc) {
        file_fence found;
        if (rc >= 0) rc = find_fence(*a, found);
        // A file that is being made, or has been removed: what is asked of it finds that out.
        const bool known = rc >= 0 || rc == -ENOENT;
        self->was_read(file->id, known ? failure{} : self->pool_->failed(rc, described(io_kind::write, *file)), found);
      });
}

void file_fences::was_read(file_id id, const failure& why, const file_fence& found) {
  std::deque<waiter> failed;
  {
    const lock_guard lock(mutex_);
    state& s = files_[id];
    s.being_read = false;
    if (why)
      failed.swap(s.waiting);
    else
      s.known = found;
  }
  for (const waiter& w : failed) w.go(why, {});
  admit(id);
}

void file_fences::admit(file_id id) {
  unique_lock lock(mutex_);
  const auto found = files_.find(id);
  if (found == files_.end() || found->second.admitting || !found->second.known) return;
  state& s = found->second;
  s.admitting = true;  // so it stays in the map
  while (!s.waiting.empty()) {
    const turn what = s.waiting.front().what;
    if (s.changes || (what == turn::change && s.writes != 0)) break;
    if (what == turn::change)
      s.changes = true;
    else
      ++s.writes;
    const entered go = std::move(s.waiting.front().go);
    s.waiting.pop_front();
    const file_fence fence = *s.known;
    lock.unlock();
    go({}, fence);
    lock.lock();
  }
  s.admitting = false;
}

void file_fences::leave(file_id id, turn what) {
  {
    const lock_guard lock(mutex_);
    state& s = files_[id];
    if (what == turn::change)
      s.changes = false;
    else
      --s.writes;
  }
  admit(id);
}

void file_fences::set(const shape_ptr& file, const file_fence& fence, completion done) {
  pool_->write(
      object_name(file->id), 0, described(io_kind::advance, *file),
      [&calls = pool_->calls(), text = text_of(fence)](rados_write_op_t op) {
        calls.write_op_assert_exists(op);
        calls.write_op_setxattr(op, attribute, text.data(), text.size());
      },
      [self = shared_from_this(), file, fence, done = std::move(done)](int rc) {
        if (rc < 0) return done(self->pool_->failed(rc, described(io_kind::advance, *file)));
        {
          const lock_guard lock(self->mutex_);
          self->files_[file->id].known = fence;
        }
        done({});
      });
}

void file_fences::forget(file_id id) {
  const lock_guard lock(mutex_);
  files_[id].known = file_fence{};
}

}  // namespace ooc::storage
