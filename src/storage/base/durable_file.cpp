#include "storage/base/durable_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/base/whole_transfer.hpp"

namespace ooc::storage {

namespace {

[[noreturn]] void fail(int error, const std::string& what) { throw io_error({error, std::generic_category()}, what); }

}  // namespace

std::string new_uuid() {
  std::array<std::uint8_t, 16> b{};
  if (::getrandom(b.data(), b.size(), 0) != static_cast<ssize_t>(b.size()))
    fail(errno, "no random numbers for a new identity");
  b[6] = static_cast<unsigned char>((b[6] & 0x0f) | 0x40);
  b[8] = static_cast<unsigned char>((b[8] & 0x3f) | 0x80);
  return uuid_text(b);
}

std::string uuid_text(const std::array<std::uint8_t, 16>& id) {
  std::string s;
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) s += '-';
    s += "0123456789abcdef"[id[i] >> 4];
    s += "0123456789abcdef"[id[i] & 15];
  }
  return s;
}

void sync_folder(const std::filesystem::path& folder) {
  const file_descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail(errno, "folder '" + folder.string() + "' cannot be synced");
}

void write_durably(const std::filesystem::path& file, const std::string& text) {
  const file_descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) fail(errno, "'" + file.string() + "' cannot be made");
  int error = write_whole(fd.get(), text.data(), text.size(), 0);
  if (error == 0 && ::fsync(fd.get()) != 0) error = errno;
  if (error != 0) fail(error, "'" + file.string() + "' cannot be written");
}

}  // namespace ooc::storage
