// Keys: the secrets by which servers and clients of a store prove to each other who they are.
//
// There are two ranks.  The *cluster key* is 32 random bytes that every server holds, and every
// administrator's client that wants to: its holder may act for any user and enlist I/O servers.  A *user
// key* names one user with some groups, and is derived from the cluster key:
//
//     identity = "oocarray-3:user:" name ":" uid ":" gid "," gid ... ":" serial ":" cluster
//     secret   = HMAC-SHA-256(cluster key, "oocarray secret 3" | identity)
//
// So a server needs no list of users: it derives the secret of whoever names itself, and who alters the
// identity has no secret for it.  Holders of the cluster key use a derived secret, too, of the identity
// "oocarray-3:cluster:" cluster.  `cluster` is a fingerprint of the cluster key (8 bytes of
// HMAC-SHA-256(cluster key, "oocarray cluster 3"), hexadecimal), `serial` when the key was made (seconds
// since 1970, 4 bytes, the highest first) and 8 random bytes.  Keys of earlier releases have the random
// bytes alone; they count as made before all others, so that any revocation (revocations.hpp) covers them.
//
// A key is kept in a file that only its owner may read, of one line: "oocarray-key 1 <64 hexadecimal
// digits>", or "oocarray-user-key 1 <identity> <64 hexadecimal digits>".  The bytes are wiped from memory
// when the object goes.  Immutable; any thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::wire {

/// Whom a user key names.
struct key_user {
  std::string name;  ///< 1 to 32 of A-Z a-z 0-9 . _ -
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> groups;  ///< 1 to 32; the first one is the usual one

  bool in_group(std::uint32_t gid) const noexcept;
  bool operator==(const key_user&) const = default;
};

/// The fields of an identity.
struct key_holder {
  std::string identity;          ///< as it was sent; empty: nobody has proven anything
  std::optional<key_user> user;  ///< none: a holder of the cluster key
  std::string cluster;           ///< fingerprint of the cluster key
  std::int64_t made = 0;         ///< of a user's key: seconds since 1970; 0: it does not say
};

/// Nothing where `identity` is not one.
std::optional<key_holder> parse_identity(std::string_view identity);

class access_key {
 public:
  static constexpr std::size_t size = 32;  // bytes
  using secret = std::array<std::uint8_t, size>;

  /// A new cluster key.
  static std::shared_ptr<const access_key> random();
  /// From a file, of either rank.  Throws as read_secret_line() does.
  static std::shared_ptr<const access_key> read(const std::filesystem::path& file);
  /// The key of a user of this cluster, new at every call (its serial is), made now or at `made`, if that is
  /// later.  Throws usage_error (errc::invalid_request) where this is a user's key itself, or name or groups
  /// cannot be.
  std::shared_ptr<const access_key> for_user(const key_user& user, std::int64_t made = 0) const;

  access_key() = default;
  ~access_key();
  access_key(const access_key&) = delete;
  access_key& operator=(const access_key&) = delete;

  /// Makes `file` (mode 0600; its folder must exist).  Throws as write_secret_line() does.
  void write(const std::filesystem::path& file) const;

  bool of_cluster() const noexcept { return !holder_.user; }
  /// Whom it proves its holder to be.
  const key_holder& holder() const noexcept { return holder_; }
  /// The secret that goes with holder().identity.
  secret own_secret() const;
  /// The secret of another holder of a key of this cluster.  Only with the cluster key.
  secret secret_of(const key_holder& other) const;

 private:
  void name_cluster();

  secret bytes_{};  // of the cluster key, or the secret of a user's
  key_holder holder_;
};

using key_ptr = std::shared_ptr<const access_key>;

/// The key of this program: the file `option` if that is not empty, else the one that the
/// environment variable OOC_KEY names, else ~/.config/oocarray/key if there is one.  Empty: there is none,
/// or `option` or OOC_KEY is "none".  Throws as access_key::read() does.
key_ptr find_key(const std::filesystem::path& option);

/// The same for a server, which must hold the cluster key: throws usage_error where it is a user's.
key_ptr find_server_key(const std::filesystem::path& option);

/// The file that find_key() reads; empty: none.
std::filesystem::path find_key_file(const std::filesystem::path& option);

/// ~/.config/oocarray/key; empty where HOME is not set.
std::filesystem::path default_key_file();

}  // namespace ooc::wire
