// The cluster key: 32 secret random bytes that every server and client of a store holds.
//
// Who holds it may connect, and is believed about the user it acts for; see docs/wire-format.md,
// "Handshake".  It is kept in a file that only its owner may read: "oocarray-key 1 <64 hexadecimal
// digits>".  The bytes are wiped from memory when the object goes.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace ooc::wire {

class cluster_key {
 public:
  static constexpr std::size_t size = 32;  // bytes

  /// A new key.
  static std::shared_ptr<const cluster_key> random();
  /// From a file.  Throws as read_secret_file() does.
  static std::shared_ptr<const cluster_key> read(const std::filesystem::path& file);

  cluster_key() = default;
  ~cluster_key();
  cluster_key(const cluster_key&) = delete;
  cluster_key& operator=(const cluster_key&) = delete;

  /// Makes `file` (mode 0600; its folder must exist).  Throws as write_secret_file() does.
  void write(const std::filesystem::path& file) const;
  std::span<const std::uint8_t, size> bytes() const noexcept { return bytes_; }

 private:
  std::array<std::uint8_t, size> bytes_{};
};

using key_ptr = std::shared_ptr<const cluster_key>;

/// The key of this program: the file `option` if that is not empty, else the one that the
/// environment variable OOC_KEY names, else ~/.config/oocarray/key if there is one.  Empty: none.
/// Throws as cluster_key::read() does.
key_ptr find_cluster_key(const std::filesystem::path& option);

/// ~/.config/oocarray/key; empty where HOME is not set.
std::filesystem::path default_key_file();

}  // namespace ooc::wire
