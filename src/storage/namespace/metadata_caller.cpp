#include "storage/namespace/metadata_caller.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include "storage/base/file_access.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_database.hpp"
#include "storage/namespace/path_resolution.hpp"

namespace ooc::storage {

metadata_caller::metadata_caller(std::shared_ptr<metadata_database> db, credentials who,
                                 std::optional<client_call> call)
    : db_(std::move(db)), who_(std::move(who)), call_(call) {}

// A client of a server has taken its own umask away.
std::uint32_t metadata_caller::masked(std::uint32_t mode) const {
  return mode & 07777 & (call_ ? ~std::uint32_t{0} : ~process_umask());
}

process_identity metadata_caller::maker() const {
  return call_ ? maker_identity(call_->client) : db_->me;
}

void metadata_caller::record(const entry& about) const OOC_REQUIRES(db_->mutex) {
  if (call_ && call_->sequence != 0) log_call(db_->now(), *call_, about);
}

void metadata_caller::require_maker(file_id id) const OOC_REQUIRES(db_->mutex) {
  if (!call_) return;
  sqlite::query q(db_->now(), "SELECT boot, pid_space FROM making WHERE id = ?", id);
  if (!q.next()) return;
  const process_identity maker{0, 0, q.text(0), q.text(1)};
  if (client_of(maker) != call_->client)
    refuse(EACCES, "file number " + std::to_string(id) + " is being made by another client");
}

void metadata_caller::require_writer(sqlite::connection& c, file_id id, const char* doing) const {
  if (!call_) return;
  const path_resolution walk(c, who_);
  walk.require_way_to(id);
  const entry e = read_entry(c, id, walk.path_of(id));
  if (!permits(who_, e, may_write) && who_.uid != e.owner)
    refuse(EACCES, storage::quoted(e.path) + ": user " + std::to_string(who_.uid) + " may not " + doing +
                       "; its owner (user " + std::to_string(e.owner) +
                       ") can change the mode (`ooc chmod`)");
}

}  // namespace ooc::storage
