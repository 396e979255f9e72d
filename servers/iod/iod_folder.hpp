// The folder of an I/O server: the stripe objects, and a file that says whose it is.
//
// "oocarray-iod" holds four lines: "oocarray-iod 2", "folder UUID" (made with the folder), "node N",
// and, once the server has registered, "store UUID KEY", KEY being the public key of the store's
// capabilities in hexadecimal digits.  With it the server serves those who were admitted before a
// restart, whether the metadata server is there or not.  For the same reason "oocarray-revoked", if it is
// there, holds the revoked keys that the metadata server has told last (revocations.hpp).  "oocarray-epoch" is that of
// folder_epoch.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "daemon/folder_epoch.hpp"
#include "iod/iod_home.hpp"
#include "storage/base/file_descriptor.hpp"

namespace ooc::iod {

class iod_folder final : public iod_home {
 public:
  /// Makes the folder if it is missing or empty.  It is locked: throws usage_error (errc::busy)
  /// where another server uses it, (errc::not_a_store) where it is another node's or holds
  /// something else, io_error where it cannot be used.
  iod_folder(std::filesystem::path folder, std::uint32_t node);

  const std::filesystem::path& path() const noexcept { return folder_; }
  std::string uuid() const override { return uuid_; }
  const std::string& store_uuid() const override { return store_uuid_; }
  const wire::capability_public_key* capability_key() const override { return store_uuid_.empty() ? nullptr : &key_; }

  std::uint64_t epoch() const override { return epoch_->number(); }

  /// Remembers the store, durably.
  void join(const std::string& store_uuid, const wire::capability_public_key& key, std::uint32_t nodes) override;

  /// Throws as revocations::read() does.
  wire::revocations revoked() const override;
  void remember(const wire::revocations& revoked) const override;

 private:
  void read();
  void write(const std::string& store_uuid, const wire::capability_public_key& key) const;

  const std::filesystem::path folder_;
  const std::uint32_t node_;
  storage::file_descriptor lock_;
  std::optional<servers::folder_epoch> epoch_;
  std::string uuid_;
  std::string store_uuid_;
  wire::capability_public_key key_{};
};

}  // namespace ooc::iod
