#include "support/memory_io_service.hpp"

#include <algorithm>
#include <cerrno>

namespace ooc::testing {

namespace {

failure missing(file_id id) { return {{ENOENT, std::generic_category()}, "no stripe object " + std::to_string(id)}; }

std::byte fill_of(const file_shape& file, std::uint64_t file_offset) {
  return file.fill.empty() ? std::byte{0} : file.fill[file_offset % file.fill.size()];
}

// A flush reads array memory that the program wrote before the block was made read-only: ordered by the page tables,
// which ThreadSanitizer does not see.
__attribute__((no_sanitize("thread"))) std::byte untracked(const std::byte* from) {
  return *static_cast<const volatile std::byte*>(from);
}

}  // namespace

/// Calls f(stripe object offset, memory offset, file offset) for each byte of the request on this node.
template <class F>
failure memory_io_service::for_each_byte(const node_call& c, F&& f) {
  const file_shape& file = *c.file;
  const request& r = *c.wanted;
  if (r.file_end() > file.size) return {errc::invalid_request, "past the end"};
  last_regions_.clear();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;  // stripe object offset, length
  r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t length) {
    for (std::uint64_t i = 0; i < length;) {
      const std::uint64_t region = std::min(length - i, file.striping.sf - (at + i) % file.striping.sf);
      if (file.striping.stripe_index_of(at + i) == c.stripe_index) {
        const std::uint64_t offset = file.striping.node_offset(at + i);
        for (std::uint64_t b = 0; b < region; ++b) f(offset + b, memory + i + b, at + i + b);
        extents.emplace_back(offset, region);
      }
      i += region;
    }
  });
  for (const auto& [offset, length] : extents) {
    if (!last_regions_.empty() && last_regions_.back().second + last_regions_.back().first == offset)
      last_regions_.back().first += length;
    else
      last_regions_.emplace_back(length, offset);
  }
  return {};
}

void memory_io_service::answer(node_call call, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    f = carry_out(call);
  }
  // As the real node: a failure's text names node and file.
  if (f && call.file) f.what = "node " + name_ + ": '" + call.file->name + "': " + f.what;
  if (holding_ && call.kind == io_kind::read)
    held_ = [f = std::move(f), done = std::move(done)] { done(f); };
  else
    done(f);
}

failure memory_io_service::carry_out(const node_call& c) {
  stats_.read_requests += c.kind == io_kind::read;
  stats_.write_requests += c.kind == io_kind::write;
  stats_.syncs += c.kind == io_kind::sync;
  if (const auto f = failing_.find(c.kind); f != failing_.end()) return {f->second, "injected"};
  switch (c.kind) {
    case io_kind::create:
      return create(*c.file, c.file->sparse ? 0 : c.file->striping.object_size(c.stripe_index, c.file->size));
    case io_kind::resize: return c.lost ? failure{errc::invalid_request, "nothing is lost here"} : resize(c);
    case io_kind::list:
      for (const auto& s : objects_) c.answer->ids.push_back(s.first);
      return {};
    case io_kind::advance:
    case io_kind::permit:
    case io_kind::sync:
    case io_kind::trim:
    case io_kind::find_locality: return {};
    default: break;
  }
  const auto s = objects_.find(c.file->id);
  if (s == objects_.end()) return missing(c.file->id);
  object_data& object = s->second;
  switch (c.kind) {
    case io_kind::prepare: object.commits[c.file->commit + 1] = object.bytes; return {};
    case io_kind::roll_back: object.bytes = object.commits[c.file->commit]; return {};
    case io_kind::find_changes:
      if (!object.bytes.empty()) c.answer->ranges = {{0, object.bytes.size()}};
      return {};
    case io_kind::clone: objects_[c.into->id].bytes = object.commits[c.file->commit]; return {};
    case io_kind::verify: c.answer->report.chunks = (object.bytes.size() + chunk_size - 1) / chunk_size; return {};
    case io_kind::remove:
      capacity_ += object.reserved;
      objects_.erase(s);
      return {};
    default: return transfer(c, object);
  }
}

failure memory_io_service::transfer(const node_call& c, object_data& object) {
  const file_shape& file = *c.file;
  if (c.kind == io_kind::read)
    return for_each_byte(c, [&](std::uint64_t offset, std::uint64_t m, std::uint64_t file_offset) {
      const auto& bytes = file.at_commit ? object.commits[file.commit] : object.bytes;
      c.memory[m] = offset < bytes.size() ? bytes[offset] : fill_of(file, file_offset);
      ++stats_.bytes_read;
    });
  return for_each_byte(c, [&](std::uint64_t offset, std::uint64_t m, std::uint64_t) {
    auto& bytes = object.bytes;
    for (std::uint64_t b = bytes.size(); b <= offset; ++b)
      bytes.push_back(fill_of(file, file.striping.file_offset(c.stripe_index, b)));
    bytes[offset] = untracked(c.memory + m);
    ++stats_.bytes_written;
  });
}

failure memory_io_service::create(const file_shape& file, std::uint64_t bytes) {
  if (objects_.count(file.id) != 0) return {{EEXIST, std::generic_category()}, "exists"};
  if (bytes > capacity_) return {{ENOSPC, std::generic_category()}, "full"};
  capacity_ -= bytes;
  objects_[file.id].reserved = bytes;
  return {};
}

failure memory_io_service::resize(const node_call& c) {
  const file_shape& file = *c.file;
  const std::uint64_t before = file.striping.object_size(c.stripe_index, c.old_size);
  const std::uint64_t after = file.striping.object_size(c.stripe_index, file.size);
  auto s = objects_.find(file.id);
  if (s == objects_.end() && before == 0) s = objects_.emplace(file.id, object_data{}).first;
  if (s == objects_.end()) return missing(file.id);
  if (!file.sparse) {  // what is reserved may be another than `before`, as a resize may be repeated
    std::uint64_t& reserved = s->second.reserved;
    if (after > reserved && after - reserved > capacity_) return {{ENOSPC, std::generic_category()}, "full"};
    capacity_ += reserved;
    capacity_ -= after;
    reserved = after;
  }
  if (after < s->second.bytes.size()) s->second.bytes.resize(after);
  return {};
}

io_stats memory_io_service::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void memory_io_service::fail(io_kind call, std::error_code code) {
  const std::lock_guard lock(mutex_);
  failing_[call] = code;
}

void memory_io_service::heal() {
  const std::lock_guard lock(mutex_);
  failing_.clear();
}

void memory_io_service::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

std::vector<std::byte> memory_io_service::object(file_id id) const {
  const std::lock_guard lock(mutex_);
  const auto s = objects_.find(id);
  return s == objects_.end() ? std::vector<std::byte>() : s->second.bytes;
}

std::set<file_id> memory_io_service::objects() const {
  const std::lock_guard lock(mutex_);
  std::set<file_id> ids;
  for (const auto& s : objects_) ids.insert(s.first);
  return ids;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> memory_io_service::last_regions() const {
  const std::lock_guard lock(mutex_);
  return last_regions_;
}

}  // namespace ooc::testing
