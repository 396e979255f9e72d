// What stands behind an ooc::store: the metadata service and the I/O nodes, in one place.
//
// Thread-safe.  Throws ooc::error; see store.hpp and metadata_service.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oocarray/store.hpp"
#include "storage/metadata_service.hpp"
#include "storage/striped_file.hpp"

namespace ooc::storage {

/// An entry and the file it describes, open.
struct opened_file {
  entry meta;
  std::shared_ptr<const striped_file> file;
};

enum class open_mode { read, read_write };

class store_core {
 public:
  store_core(std::string url, std::string uuid, std::shared_ptr<metadata_service> metadata,
             striped_file::nodes nodes, credentials who);

  /// Checks the caller's permission; throws EACCES, ENOENT, EISDIR.
  opened_file open(std::string_view path, open_mode mode);
  /// Makes the entry, then the shares, then commits: a failure leaves nothing behind.
  /// `f.striping` may have nn == 0 (all nodes); sf must be given.
  opened_file create(std::string_view path, const new_file& f);
  /// Removes entry and shares of a file, or an empty folder.
  void remove(std::string_view path);
  /// Changes the size (and extents) of a file; returns it as it then is.
  opened_file resize(const opened_file& f, std::uint64_t size,
                     const std::vector<std::uint64_t>& extents);

  metadata_service& metadata() noexcept { return *metadata_; }
  const striped_file::nodes& nodes() const noexcept { return nodes_; }
  const std::string& url() const noexcept { return url_; }
  const std::string& uuid() const noexcept { return uuid_; }
  /// Bytes that all nodes together may hold for transfers.
  std::uint64_t staging_bytes() const;

 private:
  std::string url_;
  std::string uuid_;
  std::shared_ptr<metadata_service> metadata_;
  striped_file::nodes nodes_;
  credentials who_;
};

}  // namespace ooc::storage
