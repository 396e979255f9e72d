// Files outside the store, read and written in large pieces.  Failures throw io_error with the
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ooc::tool {

/// "-" is standard input.  FIFOs and devices are streams: read once, from the beginning on.
class input_file {
 public:
  /// `read_empty`: a file that is said to have no bytes is a stream, too, for those of /proc and /sys have some all the
  /// same.
  explicit input_file(const std::string& name, bool read_empty = false);
  ~input_file();
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;

  bool is_stream() const noexcept { return stream_; }
  /// Not of a stream.
  std::uint64_t size() const;
  /// Throws usage_error where a stream has more to give.
  void expect_end() const;
  /// Fills `out` from byte `offset` on (a stream: with what comes next); one that ends before is a
  /// failure.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// Of a stream: leaves out what comes next; one that ends before is a failure.
  void skip(std::uint64_t bytes) const;
  /// Of a stream: fills `out` with what comes next; less where it ends.
  std::size_t read_some(std::span<std::byte> out) const;

 private:
  std::size_t read_once(std::uint64_t offset, std::span<std::byte> out) const;

  std::string name_;
  int fd_;
  bool stream_ = false;
};

/// A file that appears under its name only when it is complete; "-" is standard output, and FIFOs and
/// character devices are written to as they are.
class output_file {
 public:
  /// Refuses an existing file unless `replace`, and sockets and block devices; `mode` but for the umask.  A symbolic
  /// link stays, and the file that it leads to is replaced.
  output_file(const std::string& name, bool replace, unsigned mode = 0666);
  /// Removes what was not published.
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void append(std::span<const std::byte> bytes);
  /// Appends zeros: to a file, as a hole.
  void skip(std::uint64_t bytes);
  /// Where the file is until it has its name, for who writes it by other means; empty: it is a stream.
  const std::string& path() const noexcept { return part_; }
  /// Syncs and gives the file its name.
  void publish();

 private:
  void make_part(unsigned mode);
  [[noreturn]] void fail(int error, const char* doing) const;

  std::string name_;
  std::string place_;  ///< the name, or what it leads to as a symbolic link
  std::string part_;
  bool replace_;
  bool stream_ = false;
  int fd_ = -1;
};

}  // namespace ooc::tool
