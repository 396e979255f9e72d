#include "storage/chunked/shard_draft.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <utility>

#include "storage/base/whole_transfer.hpp"
#include "storage/chunked/shard_index.hpp"

namespace ooc::storage {
namespace {

std::error_code error_of(int e) { return {e, std::generic_category()}; }

/// A new file without a name; not all file systems have such, but all can take the name away.
file_descriptor unnamed_file(const std::string& folder) {
  file_descriptor made(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made || errno == ENOENT) return made;
  std::string name = folder + "/.oocarray.XXXXXX";
  made = file_descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (made) static_cast<void>(::unlink(name.c_str()));
  return made;
}

/// Copies bytes of `from` to the end of `to`, which it moves.
std::error_code append(int from, std::uint64_t begin, std::uint64_t bytes, int to, std::uint64_t& end) {
  auto in = static_cast<off_t>(begin), out = static_cast<off_t>(end);
  end += bytes;
  while (bytes > 0) {
    const ssize_t n = ::copy_file_range(from, &in, to, &out, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    bytes -= static_cast<std::uint64_t>(n);
  }
  // Where the kernel does not copy between these file systems.
  std::vector<std::byte> some(std::min<std::uint64_t>(bytes, 1 << 20));
  while (bytes > 0) {
    const std::size_t n = std::min<std::uint64_t>(bytes, some.size());
    if (const int e = read_whole(from, some.data(), n, static_cast<std::uint64_t>(in))) return error_of(e);
    if (const int e = write_whole(to, some.data(), n, static_cast<std::uint64_t>(out))) return error_of(e);
    in += static_cast<off_t>(n);
    out += static_cast<off_t>(n);
    bytes -= n;
  }
  return {};
}

}  // namespace

file_version state_of(int fd, std::error_code& code) {
  struct stat s {};
  code = ::fstat(fd, &s) == 0 ? std::error_code{} : error_of(errno);
  return {s.st_dev, s.st_ino, static_cast<std::uint64_t>(s.st_size),
          s.st_mtim.tv_sec * std::int64_t{1'000'000'000} + s.st_mtim.tv_nsec};
}

std::error_code shard_draft::open(const std::string& folder) {
  file_ = unnamed_file(folder);
  if (!file_ && errno == ENOENT) {
    std::error_code e;
    std::filesystem::create_directories(folder, e);
    if (e) return e;
    file_ = unnamed_file(folder);
  }
  return file_ ? std::error_code{} : error_of(errno);
}

std::error_code shard_draft::put(std::size_t in_shard, std::span<const std::byte> packed) {
  if (packed.size() > std::numeric_limits<std::uint32_t>::max()) return error_of(EFBIG);
  if (const int e = write_whole(file_.get(), packed.data(), packed.size(), end_)) return error_of(e);
  file_chunk& c = chunks_[in_shard];
  wasted_ += c.bytes;
  count_ += c.bytes == 0;
  c = {end_, static_cast<std::uint32_t>(packed.size()), 0};
  end_ += packed.size();
  return {};
}

std::error_code shard_draft::write_shard(int to, int other, const std::vector<file_chunk>& others, const index_place& i,
                                         std::vector<file_chunk>& shard) const {
  const std::uint64_t index_bytes = shard_index_bytes(chunks_.size(), i.summed);
  std::uint64_t end = i.first ? index_bytes : 0;
  shard.assign(chunks_.size(), {});
  // In the order in which they were written, so that what lies together is copied together.
  const auto append_all = [&](int from, const std::vector<file_chunk>& chunks) -> std::error_code {
    std::vector<std::size_t> order;
    for (std::size_t k = 0; k < chunks.size(); ++k)
      if (chunks[k].bytes != 0 && shard[k].bytes == 0) order.push_back(k);
    std::ranges::sort(order, {}, [&](std::size_t k) { return chunks[k].offset; });
    for (std::size_t k = 0; k < order.size();) {
      const std::uint64_t begin = chunks[order[k]].offset;
      std::uint64_t bytes = 0;
      for (; k < order.size() && chunks[order[k]].offset == begin + bytes; ++k) {
        shard[order[k]] = {end + bytes, chunks[order[k]].bytes, 0};
        bytes += chunks[order[k]].bytes;
      }
      if (const std::error_code e = append(from, begin, bytes, to, end)) return e;
    }
    return {};
  };
  if (const std::error_code e = append_all(file_.get(), chunks_)) return e;
  if (const std::error_code e = append_all(other, others)) return e;
  const std::vector<std::byte> index = shard_index_of(shard, i.summed);
  return error_of(write_whole(to, index.data(), index.size(), i.first ? 0 : end));
}

}  // namespace ooc::storage
