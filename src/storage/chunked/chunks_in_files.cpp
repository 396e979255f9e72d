#include "storage/chunked/chunks_in_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <new>
#include <utility>

#include "storage/base/file_descriptor.hpp"
#include "storage/base/whole_transfer.hpp"
#include "storage/chunked/chunk_filters.hpp"
#include "storage/chunked/whole_file.hpp"

namespace ooc::storage {

std::uint64_t most_stored_of(const chunked_dataset& d) noexcept {
  return std::min<std::uint64_t>(most_packed(d.grid.chunk_bytes()), std::numeric_limits<std::uint32_t>::max());
}

failure sync_files_of(const chunked_dataset& d, const plain_file& description) {
  const std::string folder = std::filesystem::path(d.chunks.files->names).parent_path();
  struct stat s {};
  static_cast<void>(::fstat(description.file.get(), &s));
  const std::error_code code = sync_files_below(folder, description.file.get(), s.st_dev);
  if (!code) return {};
  return {code, "syncing '" + folder + "', dataset '" + d.chunks.dataset + "': " + code.message()};
}

chunks_in_files::chunks_in_files(std::shared_ptr<const plain_file> description,
                                 std::shared_ptr<const chunked_dataset> d)
    : description_(std::move(description)), dataset_(std::move(d)), most_stored_(most_stored_of(*dataset_)) {}

chunks_in_files::stored chunks_in_files::read(std::uint64_t chunk, chunk_decoder& into) const {
  const file_descriptor fd(::open(dataset_->file_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat s {};
  if (!fd || ::fstat(fd.get(), &s) != 0) {
    const std::error_code code(errno, std::generic_category());
    if (code == std::errc::no_such_file_or_directory) return {};
    return {failed(chunk, code, "cannot be read: " + code.message())};
  }
  const auto bytes = static_cast<std::uint64_t>(s.st_size);
  if (bytes == 0 || bytes > most_stored_)
    return {failed(chunk, errc::corrupt,
                   "has " + std::to_string(bytes) +
                       " bytes, and what is stored of a chunk has at least 1, and at most " +
                       std::to_string(most_stored_))};
  const std::span<std::byte> memory = into.stored(bytes);
  if (const int e = read_whole(fd.get(), memory.data(), memory.size(), 0)) {
    const std::error_code code(e, std::generic_category());
    return {failed(chunk, code, "cannot be read: " + code.message())};
  }
  return {{}, bytes, 0};
}

void chunks_in_files::will_read(std::uint64_t chunk) const noexcept try {
  const file_descriptor fd(::open(dataset_->file_of(chunk).c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) static_cast<void>(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_WILLNEED));
} catch (const std::bad_alloc&) {  // then the device begins with it later
}

bool chunks_in_files::is_there(std::uint64_t chunk) {
  return ::access(dataset_->file_of(chunk).c_str(), F_OK) == 0 || errno != ENOENT;
}

failure chunks_in_files::write(std::uint64_t chunk, std::span<const std::byte> packed) {
  const std::error_code code = write_whole_file(dataset_->file_of(chunk), packed, description_->file.get());
  return code ? failed(chunk, code, "cannot be written: " + code.message(), false) : failure{};
}

failure chunks_in_files::sync() { return sync_files_of(*dataset_, *description_); }

}  // namespace ooc::storage
