#include "storage/service/file_moves.hpp"

#include <exception>
#include <utility>

#include "storage/service/removals.hpp"
#include "storage/service/store_core.hpp"

namespace ooc::storage {

void take_over(store_core& store, const opened_file& made, const entry& of) {
  entry as = made.meta;
  as.owner = of.owner;
  as.group = of.group;
  as.mode = of.mode;
  throw_if(store.opened(std::move(as)).file->permit_objects());
  entry gone = store.metadata().ask(calls::take_over{made.meta.id, of.id, of.generation});
  // At once: the claim of the caller keeps others from writing the file, and they must not as long as it can be read
  // here.  What fails now is done by who opens it for writing next (entry::left_behind).
  (void)remove_files(store, {std::move(gone)});
}

moved_file::moved_file(const entry& e) : id_(e.id), at_commit_(e.at_commit), opened_(e.opened) {
  if (e.commit) commit_ = e.commit->number;
}

std::shared_ptr<const striped_file> moved_file::place_in(const store_core& store) const {
  try {
    entry now = store.metadata().find(id_, at_commit_);
    if (now.id == id_ && (now.generation != 1 || now.commit)) return nullptr;
    if (now.commit) now.commit->number = commit_;  // who reads a commit stays with it
    now.opened = opened_;
    return store.opened(std::move(now)).file;
  } catch (const std::exception&) {
    return nullptr;  // it is gone, or nobody knows
  }
}

void file_finder::find(std::function<std::shared_ptr<const striped_file>()> look,
                       std::function<void(std::shared_ptr<const striped_file>)> found) const {
  try {
    const lock_guard lock(mutex_);
    if (!thread_) thread_ = std::make_unique<job_threads<>>(1);
    return thread_->post([look = std::move(look), found] { found(look()); });
  } catch (const std::exception&) {
    // There is no thread to be had, or no memory, and who asks is the end of a transfer, which must not throw.
  }
  found(nullptr);
}

}  // namespace ooc::storage
