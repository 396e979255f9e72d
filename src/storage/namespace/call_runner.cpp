// Calls that look; who makes, and who may.
#include "storage/namespace/call_runner.hpp"

#include <cerrno>
#include <string>

#include "storage/base/file_access.hpp"
#include "storage/namespace/commit_rows.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/metadata_database.hpp"
#include "storage/service/permission.hpp"

namespace ooc::storage {

using sqlite::query;

constexpr std::size_t listed_entries = 1000, listed_bytes = std::size_t{1} << 20;  // in one part

// A client of a server has taken its own umask away.
std::uint32_t call_runner::masked(std::uint32_t mode) const {
  return mode & 07777 & (call_ ? ~std::uint32_t{0} : ~process_umask());
}

void call_runner::give_to_caller(sqlite::connection& c, file_id id) const {
  const process_identity me = call_ ? maker_identity(call_->client) : db_->me;
  sqlite::run(c, "INSERT INTO making VALUES (?, ?, ?, ?, ?)", id, me.pid, me.start, me.boot, me.pid_space);
}

void call_runner::require_maker(sqlite::connection& c, file_id id) const {
  if (!call_) return;
  query q(c, "SELECT boot, pid_space FROM making WHERE id = ?", id);
  if (!q.next()) return;
  const process_identity maker{0, 0, q.text(0), q.text(1)};
  if (client_of(maker) != call_->client)
    refuse(EACCES, "file number " + std::to_string(id) + " is being made by another client");
}

void call_runner::require_writer(const transacted& t, file_id id, const char* doing) const {
  if (!call_) return;
  const path_resolution::node n = t.walk.resolve(id);
  if (who_.uid != n.owner) t.walk.require(n, may_write, t.walk.path_of(id), doing);
}

entry call_runner::present(const place& where, const transacted& t) const {
  const path_resolution::node n = t.walk.resolve(where);
  return read_entry(t.c, n.id, t.walk.path_of(where, n));
}

entry call_runner::run(const calls::lookup& q, const transacted& t) const {
  entry e = present(q.where, t);
  look_back(t.c, e);
  return e;
}

entry call_runner::run(const calls::find& q, const transacted& t) const {
  entry e = present(q.id, t);
  if (q.at_commit) look_back(t.c, e);
  return e;
}

entry call_runner::run(const calls::open& q, const transacted& t) const {
  const std::string name = shown(q.where);
  if (q.write) db_->require_writable(name);
  const path_resolution::node n = t.walk.resolve(q.where);
  if (n.kind == entry_kind::folder)
    refuse(EISDIR, name + (n.id == root_id ? " is not a file" : " is a folder, not a file"));
  if (n.kind != entry_kind::file)
    refuse(EINVAL, name + " is a symbolic link or a special file; only a mount (`ooc mount`) can follow it");
  const std::string path = t.walk.path_of(q.where, n);
  t.walk.require(n, q.write ? may_read | may_write : may_read, path, q.write ? "write it" : "read it");
  entry e = read_entry(t.c, n.id, path);
  if (q.write) require_unpacked(e, name);
  if (!q.write) look_back(t.c, e);
  if (q.unfinished) return e;
  query marked(t.c, "SELECT in_progress FROM entry WHERE id = ?", n.id);
  if (const std::string what = marked.next() ? marked.text(0) : ""; !what.empty())
    refuse(EBUSY, name +
                      " is in the middle of an algorithm, its contents are neither the old "
                      "nor the new ones (" +
                      what +
                      "); if that has died, make the array "
                      "anew, or open it with options.unfinished = ooc::open_unfinished");
  return e;
}

folder_part call_runner::run(const calls::list& q, const transacted& t) const {
  const path_resolution::node n = t.walk.resolve(q.where);
  if (n.kind != entry_kind::folder) {
    if (!q.after.empty()) return {};
    return {{run(calls::lookup{q.where}, t)}, false};
  }
  t.walk.require(n, may_read, q.where.path.empty() ? t.walk.path_of(n.id) : q.where.path, "list it");
  const std::string path = q.where.path.empty() ? "" : t.walk.path_of(q.where, n);
  if (q.whole && q.after.empty() && !call_) return {read_folder(t.c, n.id, path), false};
  return read_folder_part(t.c, n.id, path, q.after, listed_entries, listed_bytes);
}

capability_ptr call_runner::run(const calls::capability& q, const transacted& t) const {
  if (q.rights != right_remove) return {};
  query there(t.c, "SELECT 1 FROM entry WHERE id = ?", q.id);
  if (there.next())
    refuse(EBUSY, "file number " + std::to_string(q.id) + " is in use; its stripe objects cannot be removed");
  // A right to remove a file that is yet to come is none to give away.
  query last(t.c, "SELECT seq FROM sqlite_sequence WHERE name = 'entry'");
  if (call_ && (!last.next() || q.id > last.unsigned_integer(0)))
    refuse(EINVAL, "file number " + std::to_string(q.id) + " was never in use");
  return {};
}

}  // namespace ooc::storage
