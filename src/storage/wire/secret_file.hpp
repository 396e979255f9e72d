// A file that holds a secret: text, mode 0600, never overwritten.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ooc::wire {

/// Makes `file` with this one line, that only its owner may read.  It is durable on return.  Throws
/// usage_error (EEXIST) where there is a file, io_error otherwise.
void write_secret_line(const std::filesystem::path& file, std::string_view line);

/// The line of such a file, of at most 2000 bytes, without what ends it.  Throws usage_error where the file
/// belongs to another user or may be read by one (EACCES); io_error where it cannot be read.
std::string read_secret_line(const std::filesystem::path& file);

/// Makes `file` with one line, "<title> 1 <hexadecimal digits>", that only its owner may read.  It
/// is durable on return.  Throws usage_error (EEXIST) where there is a file, io_error otherwise.
void write_secret_file(const std::filesystem::path& file, std::string_view title, std::span<const std::uint8_t> secret);

/// Reads what write_secret_file() wrote into `secret`.  Throws usage_error where the file is not
/// such a one (errc::not_a_store), or belongs to another user or may be read by one (EACCES); the
/// text names file, fault and remedy.  io_error where it cannot be read.
void read_secret_file(const std::filesystem::path& file, std::string_view title, std::span<std::uint8_t> secret);

}  // namespace ooc::wire
