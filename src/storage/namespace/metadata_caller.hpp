// In whose name calls are made on an open database of metadata, and what every such call checks and records.
//
// A base of the classes whose calls these are.  Copies are other handles to the same database, which closes with
// the last.  Thread-safe; what says "inside the transaction" is called with the database's mutex held.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "storage/base/process_identity.hpp"
#include "storage/namespace/reply_cache.hpp"
#include "storage/namespace/sqlite.hpp"
#include "storage/service/entry.hpp"

namespace ooc::storage {

struct metadata_database;

class metadata_caller {
 protected:
  /// `call`: of servers, the call of a client that is being answered.
  metadata_caller(std::shared_ptr<metadata_database> db, credentials who,
                  std::optional<client_call> call = std::nullopt);
  ~metadata_caller() = default;
  metadata_caller(const metadata_caller&) = default;

  /// The mode of what is made, without the bits that the umask of a local caller takes.
  std::uint32_t masked(std::uint32_t mode) const;
  /// Who makes the files that this caller makes.
  process_identity maker() const;
  /// Inside the transaction: what the call was about, so that it is answered and not repeated if it comes again.
  void record(const entry& about = {}) const;
  /// Inside the transaction: by a client, only the maker of a file commits or abandons it.
  void require_maker(file_id id) const;
  /// Inside the transaction: by a client, the caller needs permission to write the file.
  void require_writer(sqlite::connection& c, file_id id, const char* doing) const;

  const std::shared_ptr<metadata_database> db_;
  const credentials who_;
  const std::optional<client_call> call_;
};

}  // namespace ooc::storage
