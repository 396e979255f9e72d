#include "storage/sum_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "storage/whole_transfer.hpp"

namespace ooc::storage {
namespace {

boot_id read_boot_id() {
  boot_id id;
  id.fill(0xff);
  file_descriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64] = {};
  if (!fd || ::read(fd.get(), text, sizeof text - 1) < 36) return id;
  boot_id parsed{};
  unsigned digits = 0;
  for (const char* c = text; *c != '\0' && digits < 32; ++c) {
    if (*c == '-') continue;
    const int v = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
    if (v < 0) return id;
    parsed[digits / 2] = static_cast<std::uint8_t>(parsed[digits / 2] << 4 | v);
    ++digits;
  }
  return digits == 32 ? parsed : id;
}

}  // namespace

const boot_id& this_boot() {
  static const boot_id id = read_boot_id();
  return id;
}

int sum_file::read(std::uint64_t chunk, std::span<sum_entry> out) const noexcept {
  return read_whole(fd(), out.data(), out.size_bytes(), bytes_for(chunk));
}

int sum_file::write(std::uint64_t chunk, std::span<const sum_entry> entries) const noexcept {
  return write_whole(fd(), entries.data(), entries.size_bytes(), bytes_for(chunk));
}

int sum_file::read_header(sum_header& h) const noexcept {
  if (const int e = read_whole(fd(), &h, sizeof h, 0)) return e;
  const sum_header expected;
  const std::uint32_t crc = h.crc;
  h.crc = 0;
  const bool intact = crc32c(&h, sizeof h) == crc;
  h.crc = crc;
  return intact && h.magic == expected.magic && h.version == expected.version &&
                 h.chunk_bytes == expected.chunk_bytes
             ? 0
             : EINVAL;
}

int sum_file::write_header(sum_header h) const noexcept {
  h.crc = 0;
  h.crc = crc32c(&h, sizeof h);
  return write_whole(fd(), &h, sizeof h, 0);
}

int sum_file::make_durable() const noexcept {
  return ::fdatasync(fd()) == 0 ? 0 : errno;
}

}  // namespace ooc::storage
