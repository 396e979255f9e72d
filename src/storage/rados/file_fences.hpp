// Which writes of a file a gateway lets pass, and their turns.
//
// A file's fence says which claims have ended (claim_fence) and of which generation the file is.  It is an attribute of
// the file's object in RADOS, and known here from the first call on: only this gateway, which has the file, changes it.
//
//     a write            enters when no change is inside; others may be beside it
//     a change           (of the fence, of the size, a commit) enters when nobody is inside, and keeps later ones waiting
//
// So a write that came before a change has ended when the change begins, and one that comes after it sees its fence.
//
// Owner: shared_ptr; calls that are under way keep it.  Threads: any.  One mutex, under which nothing is called.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "storage/base/mutex.hpp"
#include "storage/layout/claim_fence.hpp"
#include "storage/rados/rados_pool.hpp"
#include "storage/service/io_service.hpp"

namespace ooc::storage {

struct file_fence {
  claim_fence claims;
  std::uint64_t generation = 0;  ///< of the last opening for writing; 0: there was none

  bool operator==(const file_fence&) const = default;
};

class file_fences : public std::enable_shared_from_this<file_fences> {
 public:
  enum class turn { write, change };
  /// Called with the fence as it is as long as the caller is inside, until it calls leave(); or with why it is not
  /// known, and then nobody is inside.  Must not throw.
  using entered = std::function<void(const failure&, const file_fence&)>;

  explicit file_fences(std::shared_ptr<rados_pool> pool) : pool_(std::move(pool)) {}

  void enter(const shape_ptr& file, turn what, entered go);
  void leave(file_id id, turn what);
  /// By a change that is inside: durably.
  void set(const shape_ptr& file, const file_fence& fence, completion done);
  /// By a change that is inside: the file, whose number no other one gets, is gone.
  void forget(file_id id);

 private:
  struct waiter {
    turn what;
    entered go;
  };
  struct state {
    std::optional<file_fence> known;
    bool being_read = false;
    std::uint64_t writes = 0;
    bool changes = false;
    bool admitting = false;  ///< some thread does: admit()
    std::deque<waiter> waiting;

    bool is_idle() const noexcept { return writes == 0 && !changes && !admitting && !being_read && waiting.empty(); }
  };

  void read(const shape_ptr& file);
  void was_read(file_id id, const failure& why, const file_fence& found);
  void admit(file_id id);

  const std::shared_ptr<rados_pool> pool_;
  mutex mutex_;
  std::map<file_id, state> files_ OOC_GUARDED_BY(mutex_);
};

}  // namespace ooc::storage
