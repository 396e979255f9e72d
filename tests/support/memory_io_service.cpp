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

failure memory_io_service::failure_of(operation op) const {
  const auto f = failing_.find(op);
  if (f == failing_.end()) return {};
  return {f->second, "injected"};
}

/// As the real node: a failure's text names node and file.
failure memory_io_service::named(failure f, const file_shape& file) const {
  if (f) f.what = "node " + name_ + ": '" + file.name + "': " + f.what;
  return f;
}

/// Calls f(stripe object offset, memory offset, file offset) for each byte of the request on this node.
template <class F>
failure memory_io_service::for_each_byte(const file_shape& file, std::uint32_t stripe_index, const request& r, F&& f) {
  if (r.file_end() > file.size) return {errc::invalid_request, "past the end"};
  last_regions_.clear();
  std::vector<std::pair<std::uint64_t, std::uint64_t>> extents;  // stripe object offset, length
  r.for_each_run([&](std::uint64_t at, std::uint64_t memory, std::uint64_t length) {
    for (std::uint64_t i = 0; i < length;) {
      const std::uint64_t region = std::min(length - i, file.striping.sf - (at + i) % file.striping.sf);
      if (file.striping.stripe_index_of(at + i) == stripe_index) {
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

void memory_io_service::read(shape_ptr file, std::uint32_t stripe_index, request_ptr r, std::byte* memory,
                             completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.read_requests;
    const auto s = objects_.find(file->id);
    f = failure_of(operation::read);
    if (!f && s == objects_.end()) f = missing(file->id);
    if (!f)
      f = for_each_byte(*file, stripe_index, *r, [&](std::uint64_t offset, std::uint64_t m, std::uint64_t file_offset) {
        const auto& bytes = file->at_commit ? s->second.commits[file->commit] : s->second.bytes;
        memory[m] = offset < bytes.size() ? bytes[offset] : fill_of(*file, file_offset);
        ++stats_.bytes_read;
      });
  }
  f = named(std::move(f), *file);
  if (holding_)
    held_ = [f = std::move(f), done = std::move(done)] { done(f); };
  else
    done(f);
}

void memory_io_service::write(shape_ptr file, std::uint32_t stripe_index, request_ptr r, const std::byte* memory,
                              completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.write_requests;
    const auto s = objects_.find(file->id);
    f = failure_of(operation::write);
    if (!f && s == objects_.end()) f = missing(file->id);
    if (!f)
      f = for_each_byte(*file, stripe_index, *r, [&](std::uint64_t offset, std::uint64_t m, std::uint64_t) {
        auto& bytes = s->second.bytes;
        for (std::uint64_t b = bytes.size(); b <= offset; ++b)
          bytes.push_back(fill_of(*file, file->striping.file_offset(stripe_index, b)));
        bytes[offset] = untracked(memory + m);
        ++stats_.bytes_written;
      });
  }
  done(named(std::move(f), *file));
}

void memory_io_service::create(shape_ptr file, std::uint32_t stripe_index, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    f = failure_of(operation::create);
    const std::uint64_t bytes = file->sparse ? 0 : file->striping.object_size(stripe_index, file->size);
    if (!f && objects_.count(file->id) != 0) f = {{EEXIST, std::generic_category()}, "exists"};
    if (!f && bytes > capacity_) f = {{ENOSPC, std::generic_category()}, "full"};
    if (!f) {
      capacity_ -= bytes;
      objects_[file->id].reserved = bytes;
    }
  }
  done(named(std::move(f), *file));
}

void memory_io_service::resize(shape_ptr file, std::uint32_t stripe_index, std::uint64_t old_size, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    f = failure_of(operation::resize);
    const std::uint64_t before = file->striping.object_size(stripe_index, old_size);
    const std::uint64_t after = file->striping.object_size(stripe_index, file->size);
    auto s = objects_.find(file->id);
    if (!f && s == objects_.end() && before == 0) s = objects_.emplace(file->id, object_data{}).first;
    if (!f && s == objects_.end()) f = missing(file->id);
    if (!f && !file->sparse && after > before && after - before > capacity_)
      f = {{ENOSPC, std::generic_category()}, "full"};
    if (!f) {
      if (!file->sparse) {
        capacity_ += before;
        capacity_ -= after;
        s->second.reserved = after;
      }
      if (after < s->second.bytes.size()) s->second.bytes.resize(after);
    }
  }
  done(named(std::move(f), *file));
}

void memory_io_service::remove(shape_ptr file, completion done) {
  const file_id id = file->id;
  failure f;
  {
    const std::lock_guard lock(mutex_);
    f = failure_of(operation::remove);
    const auto s = objects_.find(id);
    if (!f && s == objects_.end()) f = missing(id);
    if (!f) {
      capacity_ += s->second.reserved;
      objects_.erase(s);
    }
  }
  done(f);
}

void memory_io_service::advance(shape_ptr file, std::uint32_t, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    f = named(failure_of(operation::advance), *file);
  }
  done(f);
}

void memory_io_service::sync(shape_ptr file, std::uint32_t, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.syncs;
    f = named(failure_of(operation::sync), *file);
  }
  done(f);
}

void memory_io_service::prepare(shape_ptr file, std::uint32_t, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    const auto s = objects_.find(file->id);
    f = named(s == objects_.end() ? missing(file->id) : failure_of(operation::prepare), *file);
    if (!f) s->second.commits[file->commit + 1] = s->second.bytes;
  }
  done(f);
}

void memory_io_service::roll_back(shape_ptr file, std::uint32_t, completion done) {
  failure f;
  {
    const std::lock_guard lock(mutex_);
    const auto s = objects_.find(file->id);
    f = named(s == objects_.end() ? missing(file->id) : failure_of(operation::roll_back), *file);
    if (!f) s->second.bytes = s->second.commits[file->commit];
  }
  done(f);
}

void memory_io_service::verify(shape_ptr file, std::uint32_t, std::function<void(const failure&, verify_report)> done) {
  failure f;
  verify_report report;
  {
    const std::lock_guard lock(mutex_);
    f = failure_of(operation::verify);
    const auto s = objects_.find(file->id);
    if (!f && s == objects_.end()) f = missing(file->id);
    if (!f) report.chunks = (s->second.bytes.size() + chunk_size - 1) / chunk_size;
  }
  done(f, report);
}

void memory_io_service::list(std::function<void(const failure&, std::vector<file_id>)> done) {
  failure f;
  std::vector<file_id> ids;
  {
    const std::lock_guard lock(mutex_);
    f = failure_of(operation::list);
    for (const auto& s : objects_) ids.push_back(s.first);
  }
  done(f, ids);
}

io_stats memory_io_service::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void memory_io_service::fail(operation op, std::error_code code) {
  const std::lock_guard lock(mutex_);
  failing_[op] = code;
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
