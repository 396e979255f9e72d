// Users' keys that are refused though they are proven: all of a user that were made up to a moment.
//
// Users' keys are derived from the cluster key, so no server has a list of them; what has one is
// their revocation.  It names users, not keys, because whoever revokes a key that was lost seldom
// has a copy of it.  The metadata server reads the list from a file beside its cluster key, which
// `ooc revoke` writes, and tells the I/O servers.
//
//     oocarray-revoked 2
//     4711 1795484201          uid, and seconds since 1970 (UTC): keys that were made until then
//     end 0f3a99c1             CRC32C of what is above, so that damage makes no key good
//
// Nothing is taken back: the servers keep what they were told, each in its folder, and add to it
// what the list says later, whatever has become of the list.
//
// A value; const members may be called by any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string_view>

#include "storage/wire/access_key.hpp"

namespace ooc::wire {

class revocations {
 public:
  /// From a file; none where there is no such file.  Throws usage_error where it is damaged
  /// (errc::not_a_store), or belongs to neither this user nor root or may be changed by others
  /// (EACCES); io_error where it cannot be read.
  static revocations read(const std::filesystem::path& file);
  /// Makes or replaces the file (mode 0644); durable, and whole at every moment.  Throws io_error.
  void write(const std::filesystem::path& file) const;

  /// Keys of this user that were made until then (or until what was said before, if that is later).
  void add(std::uint32_t uid, std::int64_t until);
  /// The same for all of `others`; true where that says anything new.
  bool add(const revocations& others);
  /// The moment up to which this user's keys are refused; 0: none is.
  std::int64_t until(std::uint32_t uid) const noexcept;
  /// True where this key is refused.  The cluster key never is.
  bool cover(const key_holder& key) const noexcept;
  /// The same by identity; one that names nobody is not covered.
  bool cover(std::string_view identity) const;

  bool empty() const noexcept { return until_.empty(); }
  const std::map<std::uint32_t, std::int64_t>& by_user() const noexcept { return until_; }
  bool operator==(const revocations&) const = default;

 private:
  std::map<std::uint32_t, std::int64_t> until_;
};

/// The list that belongs to a cluster key: the key's file with ".revoked" behind its name.
std::filesystem::path revocations_of(const std::filesystem::path& key_file);

}  // namespace ooc::wire
