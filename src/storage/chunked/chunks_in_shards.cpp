#include "storage/chunked/chunks_in_shards.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/chunked/chunks_in_files.hpp"
#include "storage/chunked/shard_index.hpp"
#include "storage/chunked/whole_file.hpp"

namespace ooc::storage {
namespace {

/// Each holds a file open.
constexpr std::size_t most_drafts = 64;
/// Of a draft, beside what it has: its chunks may have been written again and again.
constexpr std::uint64_t most_wasted = 64 << 20;

}  // namespace

chunks_in_shards::chunks_in_shards(std::shared_ptr<const plain_file> description,
                                   std::shared_ptr<const chunked_dataset> d)
    : description_(std::move(description)),
      dataset_(std::move(d)),
      most_stored_(most_stored_of(*dataset_)),
      in_shard_(dataset_->chunks.files->chunks),
      grid_(dataset_->grid.index_of(dataset_->grid.chunks() - 1)) {
  if (in_shard_.size() != grid_.size() || std::ranges::find(in_shard_, 0U) != in_shard_.end())
    refuse(errc::invalid_request, dataset_->name, "its shards have other dimensions than the array, or no chunks");
  for (std::uint64_t& last : grid_) ++last;
  constexpr std::size_t most = std::size_t{1} << 32;  // 64 GiB of index
  chunks_of_shard_ = 1;
  for (const std::size_t n : in_shard_)
    if (__builtin_mul_overflow(chunks_of_shard_, n, &chunks_of_shard_) || chunks_of_shard_ > most)
      refuse(errc::invalid_request, dataset_->name, "its shards have more chunks than any file");
}

chunks_in_shards::place chunks_in_shards::place_of(std::uint64_t chunk) const {
  const std::vector<std::uint64_t> at = dataset_->grid.index_of(chunk);
  place p{0, 0};
  for (std::size_t d = 0; d < at.size(); ++d) {
    p.shard = p.shard * ((grid_[d] - 1) / in_shard_[d] + 1) + at[d] / in_shard_[d];
    p.in_shard = p.in_shard * in_shard_[d] + at[d] % in_shard_[d];
  }
  return p;
}

std::size_t chunks_in_shards::chunks_beside(std::uint64_t chunk) const {
  const std::vector<std::uint64_t> at = dataset_->grid.index_of(chunk);
  std::size_t n = 1;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::uint64_t first = at[d] / in_shard_[d] * in_shard_[d];
    n *= std::min<std::uint64_t>(in_shard_[d], grid_[d] - first);
  }
  return n;
}

failure chunks_in_shards::read_index(std::uint64_t chunk, int fd, contents& of) const {
  const chunk_files& files = *dataset_->chunks.files;
  const std::size_t bytes = shard_index_bytes(chunks_of_shard_, files.index_summed);
  if (of.of.bytes < bytes)
    return failed(chunk, errc::corrupt,
                  "cannot be found: the shard has " + std::to_string(of.of.bytes) +
                      " bytes, and its index alone takes " + std::to_string(bytes));
  std::vector<std::byte> index(bytes);
  if (const int e = read_whole(fd, index.data(), bytes, files.index_first ? 0 : of.of.bytes - bytes)) {
    const std::error_code code(e, std::generic_category());
    return failed(chunk, code, "cannot be found in its shard: " + code.message());
  }
  try {
    of.chunks = chunks_of_shard(index, files.index_summed);
  } catch (const error& why) {
    return failed(chunk, errc::corrupt, std::string("cannot be found: ") + why.what());
  }
  for (const file_chunk& c : of.chunks)
    if (c.bytes > of.of.bytes || c.offset > of.of.bytes - c.bytes)
      return failed(chunk, errc::corrupt, "cannot be found: a chunk of its shard lies beyond its end");
  return {};
}

failure chunks_in_shards::find_contents(std::uint64_t chunk, int fd, contents_ptr& found) const {
  const std::uint64_t shard = place_of(chunk).shard;
  std::error_code code;
  contents now{state_of(fd, code), {}};
  if (code) return failed(chunk, code, "cannot be looked at: " + code.message());
  {
    const lock_guard lock(mutex_);
    const auto known = contents_.find(shard);
    if (known != contents_.end() && known->second->of == now.of) return found = known->second, failure{};
  }
  if (failure f = read_index(chunk, fd, now)) return f;
  found = std::make_shared<const contents>(std::move(now));
  const lock_guard lock(mutex_);
  contents_[shard] = found;
  return {};
}

chunks_in_shards::stored chunks_in_shards::read_from(std::uint64_t chunk, int fd, const file_chunk& at,
                                                     chunk_decoder& into) const {
  if (at.bytes > most_stored_)
    return {failed(chunk, errc::corrupt,
                   "has " + std::to_string(at.bytes) + " bytes, and what is stored of a chunk has at most " +
                       std::to_string(most_stored_))};
  const std::span<std::byte> memory = into.stored(at.bytes);
  if (const int e = read_whole(fd, memory.data(), memory.size(), at.offset)) {
    const std::error_code code(e, std::generic_category());
    return {failed(chunk, code, "cannot be read: " + code.message())};
  }
  return {{}, at.bytes, 0};
}

chunks_in_shards::stored chunks_in_shards::read(std::uint64_t chunk, chunk_decoder& into) const {
  const place p = place_of(chunk);
  if (const draft_ptr d = draft_of(p.shard)) {
    const lock_guard lock(d->lock);
    if (!d->published && d->at(p.in_shard).bytes != 0) return read_from(chunk, d->fd(), d->at(p.in_shard), into);
  }
  const file_descriptor fd(::open(dataset_->file_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const std::error_code code(errno, std::generic_category());
    if (code == std::errc::no_such_file_or_directory) return {};
    return {failed(chunk, code, "cannot be read: " + code.message())};
  }
  contents_ptr has;
  if (failure f = find_contents(chunk, fd.get(), has)) return {f};
  const file_chunk& at = has->chunks[p.in_shard];
  stored found = at.bytes == 0 ? stored{} : read_from(chunk, fd.get(), at, into);
  // A file that is written to where it is, and not replaced, may have had another index.
  std::error_code code;
  if (!found.why && state_of(fd.get(), code) != has->of)
    return {failed(chunk, {ESTALE, std::generic_category()}, "may be another one now: its shard is being written to")};
  return found;
}

void chunks_in_shards::will_read(std::uint64_t chunk) const noexcept try {
  const place p = place_of(chunk);
  file_chunk at;
  {
    const lock_guard lock(mutex_);
    if (const auto known = contents_.find(p.shard); known != contents_.end()) at = known->second->chunks[p.in_shard];
  }
  if (at.bytes == 0) return;  // or its index is not known yet
  const file_descriptor fd(::open(dataset_->file_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) static_cast<void>(::posix_fadvise(fd.get(), static_cast<off_t>(at.offset), at.bytes, POSIX_FADV_WILLNEED));
} catch (const std::bad_alloc&) {  // then the device begins with it later
}

bool chunks_in_shards::is_there(std::uint64_t chunk) {
  const place p = place_of(chunk);
  if (const draft_ptr d = draft_of(p.shard)) {
    const lock_guard lock(d->lock);
    if (!d->published && d->at(p.in_shard).bytes != 0) return true;
  }
  const file_descriptor fd(::open(dataset_->file_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno != ENOENT;
  contents_ptr has;
  return find_contents(chunk, fd.get(), has) || has->chunks[p.in_shard].bytes != 0;
}

chunks_in_shards::draft_ptr chunks_in_shards::draft_of(std::uint64_t shard) const {
  const lock_guard lock(mutex_);
  const auto found = drafts_.find(shard);
  return found == drafts_.end() ? nullptr : found->second.draft;
}

failure chunks_in_shards::begin_draft(std::uint64_t chunk, draft_ptr& made) {
  const place p = place_of(chunk);
  for (;;) {
    begun oldest{};
    {
      const lock_guard lock(mutex_);
      if (const auto found = drafts_.find(p.shard); found != drafts_.end()) {
        made = found->second.draft;
        return {};
      }
      if (drafts_.size() < most_drafts) {
        made = std::make_shared<shard_draft>(chunks_of_shard_);
        drafts_.emplace(p.shard, begun{made, chunk, turns_++});
        return {};
      }
      oldest = std::ranges::min_element(drafts_, {}, [](const auto& d) { return d.second.turn; })->second;
    }
    const lock_guard lock(oldest.draft->lock);
    if (oldest.draft->published) continue;
    if (failure f = publish(oldest.chunk, *oldest.draft)) return f;
  }
}

failure chunks_in_shards::write(std::uint64_t chunk, std::span<const std::byte> packed) {
  for (;;) {
    draft_ptr d;
    if (failure f = begin_draft(chunk, d)) return f;
    const lock_guard lock(d->lock);
    if (d->published) continue;
    std::error_code code;
    if (d->fd() < 0) code = d->open(std::filesystem::path(dataset_->file_of(chunk)).parent_path());
    if (!code) code = d->put(place_of(chunk).in_shard, packed);
    if (code) return failed(chunk, code, "cannot be written: " + code.message(), false);
    return d->count() == chunks_beside(chunk) || d->wasted() > most_wasted ? publish(chunk, *d) : failure{};
  }
}

failure chunks_in_shards::publish() {
  std::vector<begun> all;
  {
    const lock_guard lock(mutex_);
    for (const auto& [shard, b] : drafts_) all.push_back(b);
  }
  failure first;
  for (const begun& b : all) {
    const lock_guard lock(b.draft->lock);
    if (b.draft->published) continue;
    const failure f = publish(b.chunk, *b.draft);
    if (f && !first) first = f;
  }
  return first;
}

failure chunks_in_shards::publish(std::uint64_t chunk, shard_draft& d) {
  const std::uint64_t shard = place_of(chunk).shard;
  const chunk_files& files = *dataset_->chunks.files;
  const std::string name = dataset_->file_of(chunk);
  failure unread;
  contents made;
  std::error_code code;
  const auto write = [&](int to) OOC_REQUIRES(d.lock) -> std::error_code {
    // Nobody else replaces the shard now: what others have written to it by then stays.
    const file_descriptor other(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!other && errno != ENOENT) return {errno, std::generic_category()};
    contents has;
    std::error_code e;
    if (other) has.of = state_of(other.get(), e);
    if (other && !e) unread = read_index(chunk, other.get(), has);
    if (unread) return errc::corrupt;
    if (!e) e = d.write_shard(to, other.get(), has.chunks, {files.index_first, files.index_summed}, made.chunks);
    // What is read beyond the end of a file that is cut off meanwhile would be zeros.
    std::error_code gone;
    if (other && !e && state_of(other.get(), gone) != has.of) e = {ESTALE, std::generic_category()};
    if (!e) made.of = state_of(to, e);
    return e;
  };
  if (d.count() > 0) code = write_whole_file(name, write, description_->file.get());
  if (unread) return unread;
  if (code) return failed(chunk, code, "cannot be written to its shard: " + code.message(), false);
  d.published = true;
  const lock_guard lock(mutex_);
  drafts_.erase(shard);
  if (d.count() > 0) contents_[shard] = std::make_shared<const contents>(std::move(made));
  return {};
}

failure chunks_in_shards::sync() { return sync_files_of(*dataset_, *description_); }

}  // namespace ooc::storage
