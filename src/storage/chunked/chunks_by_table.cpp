#include "storage/chunked/chunks_by_table.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/whole_transfer.hpp"

namespace ooc::storage {
namespace {

constexpr const char* changed =
    "may be another one now: somebody has written to the file since it was opened; open it again";

}  // namespace

chunks_by_table::state chunks_by_table::state_of(const struct stat& s) {
  return {static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec * std::int64_t{1'000'000'000} + s.st_mtim.tv_nsec};
}

chunks_by_table::chunks_by_table(std::shared_ptr<const plain_file> file, std::shared_ptr<const chunked_dataset> d)
    : file_(std::move(file)), dataset_(std::move(d)), chunks_(dataset_->chunks) {
  struct stat s {};
  if (::fstat(file_->file.get(), &s) == 0) opened_ = state_of(s);
  check();
  for (const file_chunk& at : chunks_.table) most_stored_ = std::max<std::uint64_t>(most_stored_, at.bytes);
}

void chunks_by_table::check() const {
  const std::string& what = dataset_->name;
  const chunk_grid& grid = dataset_->grid;
  if (chunks_.table.size() != grid.chunks())
    refuse(errc::invalid_request, what,
           "it has " + std::to_string(grid.chunks()) + " chunks, and places of " +
               std::to_string(chunks_.table.size()) + " are given");
  if (chunks_.files) {
    const std::vector<std::uint32_t>& numbers = chunks_.files->file_of;
    const std::size_t n = chunks_.files->paths.size();
    if (chunks_.files->states.size() != n || numbers.size() != grid.chunks() || std::ranges::max(numbers) >= n)
      refuse(errc::invalid_request, what,
             "its chunks are in " + std::to_string(n) + " files, and states of " +
                 std::to_string(chunks_.files->states.size()) + " and the files of " + std::to_string(numbers.size()) +
                 " chunks are given, or others than there are");
  }
  for (std::uint64_t i = 0; i < chunks_.table.size(); ++i) {
    const file_chunk& c = chunks_.table[i];
    const std::uint64_t size = chunks_.files ? chunks_.files->states[chunks_.files->file_of[i]].bytes : opened_.bytes;
    if (c.bytes != 0 && (c.bytes > size || c.offset > size - c.bytes))
      refuse(errc::invalid_request, what,
             "chunk " + grid.place_of(i) + " has " + std::to_string(c.bytes) + " bytes at byte " +
                 std::to_string(c.offset) + ", and the file has " + std::to_string(size) +
                 "; copy it again where it was cut short");
  }
}

const std::string& chunks_by_table::name_of(std::uint64_t chunk) const {
  return chunks_.files ? chunks_.files->paths[chunks_.files->file_of[chunk]] : file_->path;
}

failure chunks_by_table::failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading) const {
  return dataset_->failed(name_of(chunk), chunk, code,
                          "at byte " + std::to_string(chunks_.table[chunk].offset) + " " + why, reading);
}

chunks_by_table::stored chunks_by_table::read(std::uint64_t chunk, chunk_decoder& into) const {
  if (!chunks_.files) return read_part(chunk, file_->file.get(), opened_, into);
  if (chunks_.table[chunk].bytes == 0) return {};
  const file_descriptor fd(::open(name_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return read_part(chunk, fd.get(), chunks_.files->states[chunks_.files->file_of[chunk]], into);
  const std::error_code code(errno, std::generic_category());
  if (code != std::errc::no_such_file_or_directory) return {failed(chunk, code, "cannot be read: " + code.message())};
  return {failed(chunk, {ESTALE, std::generic_category()}, changed)};
}

void chunks_by_table::will_read(std::uint64_t chunk) const noexcept {
  const file_chunk& place = chunks_.table[chunk];
  const file_descriptor own(chunks_.files ? ::open(name_of(chunk).c_str(), O_RDONLY | O_CLOEXEC) : -1);
  const int fd = chunks_.files ? own.get() : file_->file.get();
  if (fd >= 0 && place.bytes > 0)
    static_cast<void>(::posix_fadvise(fd, static_cast<off_t>(place.offset), place.bytes, POSIX_FADV_WILLNEED));
}

bool chunks_by_table::is_cut_short(std::uint64_t chunk) const {
  const std::uint64_t bytes = chunks_.table[chunk].bytes;
  return bytes < dataset_->grid.chunk_bytes() && chunks_.filters.empty() && chunks_.stored_order.empty() &&
         bytes == dataset_->grid.bytes_in_array(chunk);
}

chunks_by_table::stored chunks_by_table::read_part(std::uint64_t chunk, int fd, const state& then,
                                                   chunk_decoder& into) const {
  const file_chunk& c = chunks_.table[chunk];
  std::uint64_t bytes = c.bytes;
  if (bytes > 0) {
    if (is_cut_short(chunk)) bytes = dataset_->grid.chunk_bytes();
    const std::span<std::byte> memory = into.stored(bytes);
    if (const int e = read_whole(fd, memory.data(), c.bytes, c.offset)) {
      const std::error_code code(e, std::generic_category());
      return {failed(chunk, code, "cannot be read: " + code.message())};
    }
    std::ranges::fill(memory.subspan(c.bytes), std::byte{});
  }
  struct stat s {};
  if (::fstat(fd, &s) != 0 || state_of(s) != then) return {failed(chunk, {ESTALE, std::generic_category()}, changed)};
  return {{}, bytes, c.filter_mask};
}

}  // namespace ooc::storage
