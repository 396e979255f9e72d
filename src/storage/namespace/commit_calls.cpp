// Calls about the commits of files.
#include <cerrno>

#include "oocarray/error.hpp"
#include "storage/namespace/call_runner.hpp"
#include "storage/namespace/commit_rows.hpp"
#include "storage/namespace/entry_rows.hpp"
#include "storage/namespace/store_path.hpp"

namespace ooc::storage {

namespace {

entry with_commits(sqlite::connection& c, const path_resolution& walk, file_id id) {
  (void)generation_of(c, id);  // the file is there
  entry e = read_entry(c, id, walk.path_of(id));
  if (!e.commit) refuse(EINVAL, storage::in_quotes(e.path) + " was made without commits");
  return e;
}

}  // namespace

nothing call_runner::run(const calls::decide& q, const transacted& t) const {
  for (const calls::decide::file& f : q.files) {
    const entry e = with_commits(t.c, t.walk, f.id);
    require_writer(t, f.id, "commit it");
    if (e.commit->number != f.after)
      throw usage_error(errc::conflict, storage::in_quotes(e.path) + " has commit " + std::to_string(e.commit->number) +
                                            ", and the one that is to be made follows commit " +
                                            std::to_string(f.after) + ": open it again");
    raise_commit(t.c, e, q.time_ns, q.attributes);
  }
  return {};
}

nothing call_runner::run(const calls::roll_back& q, const transacted& t) const {
  const entry e = with_commits(t.c, t.walk, q.id);
  require_writer(t, q.id, "roll it back");
  restore_commit(t.c, e);
  return {};
}

}  // namespace ooc::storage
