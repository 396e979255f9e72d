#include "storage/wire/secret_file.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "oocarray/error.hpp"
#include "storage/base/file_descriptor.hpp"
#include "storage/wire/sodium.hpp"

namespace ooc::wire {

using storage::file_descriptor;

namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const char* doing) {
  throw io_error({errno, std::generic_category()}, "secret file '" + file.string() + "' cannot be " + doing);
}

[[noreturn]] void refuse(std::error_code code, const std::filesystem::path& file, const std::string& why) {
  throw usage_error(code, "secret file '" + file.string() + "' " + why);
}

void check_owner(const file_descriptor& fd, const std::filesystem::path& file) {
  struct stat s = {};
  if (::fstat(fd.get(), &s) != 0) fail(file, "examined");
  const std::error_code denied(EACCES, std::generic_category());
  if (!S_ISREG(s.st_mode)) refuse(denied, file, "is not a plain file; name the file of the secret");
  if (s.st_uid != ::geteuid())
    refuse(denied, file,
           "belongs to user " + std::to_string(s.st_uid) + ", not to user " + std::to_string(::geteuid()) +
               " who runs this program: chown it, or make a copy");
  if ((s.st_mode & 077) != 0) refuse(denied, file, "may be read or changed by other users: chmod 600 it");
}

}  // namespace

void write_secret_line(const std::filesystem::path& file, std::string_view text) {
  std::string line = std::string(text) + "\n";
  const file_descriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd && errno == EEXIST)
    refuse({EEXIST, std::generic_category()}, file, "exists already and is not overwritten; name a new file");
  if (!fd) fail(file, "made");
  const ssize_t n = ::write(fd.get(), line.data(), line.size());
  const bool written =
      n == static_cast<ssize_t>(line.size()) && ::fchmod(fd.get(), 0600) == 0 && ::fsync(fd.get()) == 0;
  ::sodium_memzero(line.data(), line.size());
  if (written) return;
  const int cause = n >= 0 && errno == 0 ? ENOSPC : errno;
  ::unlink(file.c_str());
  errno = cause;
  fail(file, "written");
}

std::string read_secret_line(const std::filesystem::path& file) {
  const file_descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail(file, "opened");
  check_owner(fd, file);
  std::array<char, 2048> buffer{};
  const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
  if (n < 0) fail(file, "read");
  std::string_view text(buffer.data(), static_cast<std::size_t>(n));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  std::string line(text);
  ::sodium_memzero(buffer.data(), buffer.size());
  return line;
}

void write_secret_file(const std::filesystem::path& file, std::string_view title,
                       std::span<const std::uint8_t> secret) {
  std::string line = std::string(title) + " 1 " + to_hex(secret);
  write_secret_line(file, line);
  ::sodium_memzero(line.data(), line.size());
}

void read_secret_file(const std::filesystem::path& file, std::string_view title, std::span<std::uint8_t> secret) {
  std::string line = read_secret_line(file);
  const std::string start = std::string(title) + " 1 ";
  const bool good = line.starts_with(start) && from_hex(std::string_view(line).substr(start.size()), secret);
  ::sodium_memzero(line.data(), line.size());
  if (!good)
    refuse(errc::not_a_store, file,
           "does not hold '" + start + "' and " + std::to_string(2 * secret.size()) +
               " hexadecimal digits: it is damaged or another kind of file");
}

}  // namespace ooc::wire
