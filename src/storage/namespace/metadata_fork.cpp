// Open databases in a child of fork().
//
// SQLite keeps in the process which files it has open, and with which locks; a child inherits that and not the locks.
// So nobody is in a call while the process is forked, and the child lets go of its copies of the connections at once.
// It may then open the same database for itself.
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/namespace/metadata_database.hpp"

namespace ooc::storage {
namespace {

/// Never destroyed: databases with static storage duration may be closed late.
struct open_databases {
  ooc::mutex mutex;
  std::vector<metadata_database*> all OOC_GUARDED_BY(mutex);
};

open_databases& of_process() {
  static auto* const o = new open_databases;
  return *o;
}

void before_fork() OOC_NO_THREAD_SAFETY_ANALYSIS {
  of_process().mutex.lock();
  for (metadata_database* db : of_process().all) db->mutex.lock();
}

void after_fork() OOC_NO_THREAD_SAFETY_ANALYSIS {
  for (metadata_database* db : of_process().all) db->mutex.unlock();
  of_process().mutex.unlock();
}

void after_fork_in_child() OOC_NO_THREAD_SAFETY_ANALYSIS {
  for (metadata_database* db : of_process().all) {
    if (!std::exchange(db->forked, true)) {
      if (db->connection) db->connection->abandon();
      if (db->reader) db->reader->abandon();
    }
  }
  after_fork();
}

}  // namespace

metadata_database::metadata_database() {
  static std::once_flag once;
  std::call_once(once, [] { ::pthread_atfork(before_fork, after_fork, after_fork_in_child); });
  open_databases& o = of_process();
  const lock_guard l(o.mutex);
  o.all.push_back(this);
}

metadata_database::~metadata_database() {
  open_databases& o = of_process();
  const lock_guard l(o.mutex);  // until it is closed: a fork waits for that too
  std::erase(o.all, this);
  const lock_guard mine(mutex);
  connection.reset();
  reader.reset();
}

void metadata_database::use::refuse_forked() {
  throw usage_error(errc::busy,
                    "the store was opened by the parent of this process, which was forked: open it again here");
}

}  // namespace ooc::storage
