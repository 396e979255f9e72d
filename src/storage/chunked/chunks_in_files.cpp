#include "storage/chunked/chunks_in_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/refuse.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/chunked/chunk_filters.hpp"
#include "storage/chunked/whole_file.hpp"

namespace ooc::storage {
namespace {

constexpr const char* changed =
    "may be another one now: somebody has written to the file since it was opened; open it again";

}  // namespace

chunks_in_files::state chunks_in_files::state_of(const struct stat& s) {
  return {static_cast<std::uint64_t>(s.st_size), s.st_mtim.tv_sec * std::int64_t{1'000'000'000} + s.st_mtim.tv_nsec};
}

chunks_in_files::chunks_in_files(std::shared_ptr<const plain_file> file, std::shared_ptr<const chunked_dataset> d)
    : file_(std::move(file)), dataset_(std::move(d)), chunks_(dataset_->chunks), grid_(dataset_->grid) {
  struct stat s {};
  if (::fstat(file_->file.get(), &s) == 0) {
    opened_ = state_of(s);
    device_ = s.st_dev;
  }
  if (chunks_.files && chunks_.files->are_whole()) {
    if (!chunks_.table.empty() || !chunks_.files->states.empty())
      refuse(errc::invalid_request, file_->path,
             "chunks that are whole files have no places in them, and some are given");
    most_stored_ = std::min<std::uint64_t>(most_packed(grid_.chunk_bytes()), std::numeric_limits<std::uint32_t>::max());
    return;
  }
  check_table();
  for (const file_chunk& at : chunks_.table) most_stored_ = std::max<std::uint64_t>(most_stored_, at.bytes);
}

void chunks_in_files::check_table() const {
  const std::string what = file_->path + "', dataset '" + chunks_.dataset;
  if (chunks_.table.size() != grid_.chunks())
    refuse(errc::invalid_request, what,
           "it has " + std::to_string(grid_.chunks()) + " chunks, and places of " +
               std::to_string(chunks_.table.size()) + " are given");
  if (chunks_.files && !chunks_.files->paths.empty()) {
    const std::vector<std::uint32_t>& numbers = chunks_.files->file_of;
    const std::size_t n = chunks_.files->paths.size();
    if (chunks_.files->states.size() != n || numbers.size() != grid_.chunks() || std::ranges::max(numbers) >= n)
      refuse(errc::invalid_request, what,
             "its chunks are in " + std::to_string(n) + " files, and states of " +
                 std::to_string(chunks_.files->states.size()) + " and the files of " + std::to_string(numbers.size()) +
                 " chunks are given, or others than there are");
  } else if (chunks_.files) {
    const std::vector<std::size_t>& in_file = chunks_.files->chunks;
    if (in_file.size() != chunks_.extents.size() || std::find(in_file.begin(), in_file.end(), 0U) != in_file.end())
      refuse(errc::invalid_request, what, "its files have other dimensions than the array, or no chunks");
    if (const std::uint64_t n = file_number_of(grid_.chunks() - 1) + 1; chunks_.files->states.size() != n)
      refuse(errc::invalid_request, what,
             "its chunks are in " + std::to_string(n) + " files, and states of " +
                 std::to_string(chunks_.files->states.size()) + " are given");
  }
  for (std::uint64_t i = 0; i < chunks_.table.size(); ++i) {
    const file_chunk& c = chunks_.table[i];
    const std::uint64_t size = chunks_.files ? chunks_.files->states[file_number_of(i)].bytes : opened_.bytes;
    if (c.bytes != 0 && (c.bytes > size || c.offset > size - c.bytes))
      refuse(errc::invalid_request, what,
             "chunk " + grid_.place_of(i) + " has " + std::to_string(c.bytes) + " bytes at byte " +
                 std::to_string(c.offset) + ", and the file has " + std::to_string(size) +
                 "; copy it again where it was cut short");
  }
}

std::uint64_t chunks_in_files::file_number_of(std::uint64_t chunk) const {
  if (!chunks_.files->paths.empty()) return chunks_.files->file_of[chunk];
  const std::vector<std::uint64_t> at = grid_.index_of(chunk), last = grid_.index_of(grid_.chunks() - 1);
  const std::vector<std::size_t>& in_file = chunks_.files->chunks;
  std::uint64_t n = 0;
  for (std::size_t d = 0; d < at.size(); ++d) n = n * (last[d] / in_file[d] + 1) + at[d] / in_file[d];
  return n;
}

std::string chunks_in_files::name_of(std::uint64_t chunk) const {
  if (!chunks_.files) return file_->path;
  if (!chunks_.files->paths.empty()) return chunks_.files->paths[chunks_.files->file_of[chunk]];
  const std::vector<std::uint64_t> at = grid_.index_of(chunk);
  const std::vector<std::size_t>& in_file = chunks_.files->chunks;
  std::string name = chunks_.files->names;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (d > 0) name += chunks_.files->separator;
    name += std::to_string(in_file.empty() ? at[d] : at[d] / in_file[d]);
  }
  return name;
}

failure chunks_in_files::failed(std::uint64_t chunk, std::error_code code, const std::string& why, bool reading) const {
  const std::string at = chunks_.table.empty() ? "" : " at byte " + std::to_string(chunks_.table[chunk].offset);
  return {code, (reading ? "reading '" : "writing '") + name_of(chunk) + "', dataset '" + chunks_.dataset +
                    "': chunk " + grid_.place_of(chunk) + at + " " + why};
}

chunks_in_files::stored chunks_in_files::read(std::uint64_t chunk, chunk_decoder& into) const {
  if (!chunks_.files) return read_part(chunk, file_->file.get(), opened_, into);
  if (!chunks_.table.empty() && chunks_.table[chunk].bytes == 0) return {};
  const std::string name = name_of(chunk);
  const file_descriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const std::error_code code(errno, std::generic_category());
    if (code != std::errc::no_such_file_or_directory) return {failed(chunk, code, "cannot be read: " + code.message())};
    return chunks_.table.empty() ? stored{} : stored{failed(chunk, {ESTALE, std::generic_category()}, changed)};
  }
  if (chunks_.table.empty()) return read_whole_file(chunk, fd.get(), into);
  return read_part(chunk, fd.get(), chunks_.files->states[file_number_of(chunk)], into);
}

chunks_in_files::stored chunks_in_files::read_part(std::uint64_t chunk, int fd, const state& then,
                                                   chunk_decoder& into) const {
  const file_chunk& c = chunks_.table[chunk];
  if (c.bytes > 0) {
    const std::span<std::byte> memory = into.stored(c.bytes);
    if (const int e = read_whole(fd, memory.data(), memory.size(), c.offset)) {
      const std::error_code code(e, std::generic_category());
      return {failed(chunk, code, "cannot be read: " + code.message())};
    }
  }
  struct stat s {};
  if (::fstat(fd, &s) != 0 || state_of(s) != then) return {failed(chunk, {ESTALE, std::generic_category()}, changed)};
  return {{}, c.bytes, c.filter_mask};
}

chunks_in_files::stored chunks_in_files::read_whole_file(std::uint64_t chunk, int fd, chunk_decoder& into) const {
  struct stat s {};
  if (::fstat(fd, &s) != 0) {
    const std::error_code code(errno, std::generic_category());
    return {failed(chunk, code, "cannot be looked at: " + code.message())};
  }
  const state is = state_of(s);
  if (is.bytes == 0 || is.bytes > most_stored_)
    return {failed(chunk, errc::corrupt,
                   "has " + std::to_string(is.bytes) +
                       " bytes, and what is stored of a chunk has at least 1, and at most " +
                       std::to_string(most_stored_))};
  const std::span<std::byte> memory = into.stored(is.bytes);
  if (const int e = read_whole(fd, memory.data(), memory.size(), 0)) {
    const std::error_code code(e, std::generic_category());
    return {failed(chunk, code, "cannot be read: " + code.message())};
  }
  return {{}, is.bytes, 0};
}

bool chunks_in_files::is_there(std::uint64_t chunk) const {
  return ::access(name_of(chunk).c_str(), F_OK) == 0 || errno != ENOENT;
}

failure chunks_in_files::write(std::uint64_t chunk, std::span<const std::byte> packed) const {
  const std::error_code code = write_whole_file(name_of(chunk), packed);
  return code ? failed(chunk, code, "cannot be written: " + code.message(), false) : failure{};
}

failure chunks_in_files::sync() const {
  const std::string folder = std::filesystem::path(chunks_.files->names).parent_path();
  // A file that was open before tells of failures since; one that is opened now, of those from now on.
  if (::syncfs(file_->file.get()) == 0) {
    const file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd && errno == ENOENT) return {};  // no chunk was ever written
    struct stat s {};
    if (fd && ::fstat(fd.get(), &s) == 0 && (s.st_dev == device_ || ::syncfs(fd.get()) == 0)) return {};
  }
  const std::error_code code(errno, std::generic_category());
  return {code, "syncing '" + folder + "', dataset '" + chunks_.dataset + "': " + code.message()};
}

}  // namespace ooc::storage
