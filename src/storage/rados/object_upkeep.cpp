#include "storage/rados/object_upkeep.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/in_flight.hpp"
#include "storage/base/mutex.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/file_ranks.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/result_of.hpp"

namespace ooc::storage {

namespace {

/// One of these calls.
class upkeep {
 public:
  upkeep(const rados_node_ptr& node, file_snapshots& snapshots, const node_call& call)
      : node_(*node),
        pool_(*node->pool),
        snapshots_(snapshots),
        calls_(pool_.calls()),
        call_(call),
        file_(*call.file) {}

  failure run() {
    switch (call_.kind) {
      case io_kind::create: return create();
      case io_kind::resize: return resize();
      case io_kind::remove: return remove();
      case io_kind::advance: return advance();
      case io_kind::verify: return verify();
      case io_kind::prepare: return snapshots_.prepare(file_), failure{};
      case io_kind::roll_back: return snapshots_.roll_back(file_), failure{};
      case io_kind::find_changes: return find_changes();
      case io_kind::clone: return clone();
      default: return {};
    }
  }

 private:
  static constexpr std::size_t most_at_once = 64;

  failure failed(int rc, const std::string& more = "") const {
    if (rc == -ENOENT)
      return node_.failed(call_.kind, file_, rc, "the object that says what there is of it is missing");
    return node_.failed(call_.kind, file_, rc, more);
  }
  std::string what() const { return described(call_.kind, file_); }

  int find(file_object& f) const {
    return result_of([&](const rados_pool::end& ended) {
      read_file_object(pool_, file_.id, what(), [&f, ended](int rc, const file_object& found) {
        f = found;
        ended(rc);
      });
    });
  }
  int keep(const file_object& f, bool fresh = false) const {
    return result_of(
        [&](rados_pool::end ended) { write_file_object(pool_, file_.id, f, fresh, what(), std::move(ended)); });
  }

  /// RADOS reserves nothing; but what cannot fit is refused at once.
  failure require_room(std::uint64_t bytes) const {
    if (file_.sparse || bytes <= pool_.space().free) return {};
    return failed(-ENOSPC, "which is to have " + std::to_string(bytes) + " bytes more");
  }

  failure create() const {
    const std::uint64_t object = object_bytes(file_.striping.sf);
    if (object > most_object_bytes)
      return node_.refused(call_.kind, file_,
                           "its stripes have " + std::to_string(file_.striping.sf) + " bytes; in RADOS they may have " +
                               std::to_string(most_object_bytes) + " at most");
    if (const failure f = require_room(file_.size)) return f;
    file_object made{file_.size, object, file_.cuts, {}};
    if (file_.commits) made.commits = commit_snapshots{file_.commit, pool_.new_snapshot(), 0, false};
    if (const int rc = keep(made, true); rc < 0) return failed(rc);
    return {};
  }

  /// Who opens it for writing finds that it is there, and no ranks whose claims have ended; generations count for who
  /// is about to move it only.
  failure advance() const {
    file_object now;
    pool_.shut_out();  // has been done to those whose claims have ended: OSDs are to know it
    int rc = find(now);
    if (rc >= 0 && !now.ranks.empty()) end_ranks(pool_, file_);
    if (rc >= 0 && file_.cut) {
      now.writes_since = file_.generation + 1;
      rc = keep(now);
    }
    return rc < 0 ? failed(rc) : failure{};
  }

  failure resize() const {
    if (call_.lost) return node_.refused(call_.kind, file_, "a node of a store in RADOS is not lost by itself");
    file_object now;
    const int rc = find(now);
    if (rc == -ENOENT && call_.old_size == 0) return create();
    if (rc < 0) return failed(rc);
    if (now.commits) return resize_with_commits(now);
    file_object next = now;
    next.size = file_.size;
    if (file_.cut) next.cuts = file_.cuts;
    if (file_.cut && next.writes_since) next.writes_since = 0;  // the move has come to nothing
    if (next.size >= now.size) {
      if (const failure f = require_room(next.size - now.size)) return f;
      // Who did not know yet that the file had been cut off may have written there since.
      if (file_.cuts > 1)
        if (const failure f = clear(pool_, now, now.size, next.size)) return f;
    } else {
      // In this order: whoever writes past the new size from now on learns it.
      file_object cut = now;
      cut.cuts = next.cuts;
      if (cut.cuts != now.cuts)
        if (const int e = keep(cut); e < 0) return failed(e);
      if (const failure f = clear(pool_, now, next.size, now.size)) return f;
    }
    if (const int e = keep(next); e < 0) return failed(e);
    return {};
  }

  /// What the last commit has stays; so does the number of objects that there may be.
  failure resize_with_commits(const file_object& now) const {
    if (file_.size > now.size) {
      if (const failure f = require_room(file_.size - now.size)) return f;
      // As the writer has left it, which is the caller.
      file_object next = now;
      next.size = file_.size;
      if (const int e = keep(next); e < 0) return failed(e);
      return {};
    }
    const std::uint64_t had = std::max(call_.old_size, file_.size);
    return had == file_.size ? failure{} : clear(*snapshots_.open(file_), now, file_.size, now.size);
  }

  failure find_changes() const {
    file_object now;
    if (const int rc = find(now); rc < 0) return failed(rc);
    if (snapshot_of(now, file_.commit) == 0) return commit_is_gone(file_);
    // Which objects differ, RADOS would have to be asked of each.
    if (file_.size != 0) call_.answer->ranges = {{0, file_.size}};
    return {};
  }

  /// Objects share no space with others.
  failure clone() const {
    if (!call_.copies) return failed(-EOPNOTSUPP, "whose objects can share no space (--copy copies them)");
    const auto objects = snapshots_.open(file_);
    file_object now;
    if (const int rc = find(now); rc < 0) return failed(rc);
    in_flight all;
    for (std::uint64_t i = 0; i * now.object < file_.size; ++i) {
      all.wait_below(4);
      const auto seen = std::make_shared<looked_at>();
      seen->bytes.resize(now.object);
      all.start([&](auto ended) {
        objects->read(
            object_name(file_.id, i), now.object, what(),
            [this, seen](rados_read_op_t op) {
              calls_.read_op_read(op, 0, seen->bytes.size(), seen->bytes.data(), &seen->got, &seen->result);
            },
            [this, i, seen, ended](int rc) {
              if (rc >= 0 && seen->result < 0) rc = seen->result;
              if (rc < 0) return ended(rc == -ENOENT ? failure{} : failed(rc));
              pool_.write(
                  object_name(call_.into->id, i), seen->got, what(),
                  [this, seen](rados_write_op_t op) { calls_.write_op_write(op, seen->bytes.data(), seen->got, 0); },
                  [this, ended](int written) { ended(written < 0 ? failed(written) : failure{}); });
            });
      });
    }
    if (failure f = all.wait()) return f;
    if (const int rc = find(now); rc < 0) return failed(rc);
    return snapshot_of(now, file_.commit) == 0 ? commit_is_gone(file_) : failure{};
  }

  failure remove() const {
    file_object now;
    // Nobody knows the file: it was found by its objects, of which some may have been written after it had gone.
    const bool by_names = file_.striping.nn == 0;
    if (const int rc = find(now); rc < 0 && !(by_names && rc == -ENOENT)) return failed(rc);
    snapshots_.forget(file_.id);
    if (const failure f = by_names ? remove_by_names() : clear(pool_, now, 0, now.size)) return f;
    if (now.commits)
      for (const std::uint64_t kept : {now.commits->snapshot, now.commits->next})
        if (kept != 0) pool_.drop_snapshot(kept);
    return wait_for_all(1, [&](std::uint64_t, const rados_pool::end& ended) {
      pool_.write(
          object_name(file_.id), 0, what(), [this](rados_write_op_t op) { calls_.write_op_remove(op); }, ended);
    });
  }

  /// All but the object that says what there is of the file.
  failure remove_by_names() const {
    std::vector<std::string> names;
    pool_.for_each_object([&](const std::string& name) {
      if (file_of(name) == file_.id && name != object_name(file_.id)) names.push_back(name);
      return true;
    });
    return wait_for_all(names.size(), [&](std::uint64_t i, const rados_pool::end& ended) {
      pool_.write(
          names[i], 0, what(), [this](rados_write_op_t op) { calls_.write_op_remove(op); }, ended);
    });
  }

  /// What is in these bytes of the file becomes the fill value.
  failure clear(rados_pool& objects, const file_object& now, std::uint64_t begin, std::uint64_t end) const {
    const std::uint64_t part = begin % now.object, first = (begin + now.object - 1) / now.object;
    const std::uint64_t last = (end + now.object - 1) / now.object;
    if (part != 0 && begin < end)
      if (const failure f = wait_for_all(1, [&](std::uint64_t, const rados_pool::end& ended) {
            objects.write(
                object_name(file_.id, begin / now.object), 0, what(),
                [this, part, &now, begin](rados_write_op_t op) { cut(op, part, now.object, begin); }, ended);
          }))
        return f;
    return first < last ? wait_for_all(last - first,
                                       [&](std::uint64_t i, const rados_pool::end& ended) {
                                         objects.write(
                                             object_name(file_.id, first + i), 0, what(),
                                             [this](rados_write_op_t op) { calls_.write_op_remove(op); }, ended);
                                       })
                        : failure{};
  }

  void cut(rados_write_op_t op, std::uint64_t part, std::uint64_t object, std::uint64_t at) const {
    calls_.write_op_assert_exists(op);
    if (file_.fill.empty()) return calls_.write_op_truncate(op, part);
    std::vector<std::byte> pattern(object - part);
    fill_object_bytes(file_, 0, at, pattern);
    calls_.write_op_write(op, reinterpret_cast<const char*>(pattern.data()), pattern.size(), part);
  }

  /// Starts `n` operations, some at a time.  An object that is not there is as good as removed.
  template <class Start>
  failure wait_for_all(std::uint64_t n, Start start) const {
    in_flight all;
    for (std::uint64_t i = 0; i < n; ++i) {
      all.wait_below(most_at_once);
      all.start([&](auto ended) {
        start(i, [this, ended](int rc) { ended(rc < 0 && rc != -ENOENT ? failed(rc) : failure{}); });
      });
    }
    return all.wait();
  }

  struct looked_at {
    std::vector<char> bytes;
    std::size_t got = 0;
    int result = 0;
  };

  /// Reading is what compares an object with its checksums; RADOS gives what another copy has where one is bad.
  failure verify() const {
    file_object now;
    if (const int rc = find(now); rc < 0) return failed(rc);
    if (failure f = verify(now, pool_)) return f;
    return now.commits ? verify(now, *pool_.as_of(now.commits->snapshot)) : failure{};
  }

  failure verify(const file_object& now, rados_pool& objects) const {
    verify_report& report = call_.answer->report;
    mutex of_report;
    in_flight all;
    for (std::uint64_t i = 0; i < now.objects(); ++i) {
      all.wait_below(4);
      const auto seen = std::make_shared<looked_at>();
      seen->bytes.resize(now.object);
      all.start([&](auto ended) {
        objects.read(
            object_name(file_.id, i), now.object, what(),
            [this, seen](rados_read_op_t op) {
              calls_.read_op_read(op, 0, seen->bytes.size(), seen->bytes.data(), &seen->got, &seen->result);
            },
            [&, i, seen, ended](int rc) {
              if (rc >= 0 && seen->result < 0) rc = seen->result;
              if (rc < 0 && rc != -EIO && rc != -ENOENT) return ended(failed(rc));
              {
                const lock_guard lock(of_report);
                if (rc >= 0) report.chunks += in_chunks(seen->got);
                if (rc == -EIO) {
                  report.chunks += in_chunks(now.object);
                  report.corrupt += in_chunks(now.object);
                  if (report.problems.size() < 100)
                    report.problems.push_back("bytes [" + std::to_string(i * now.object) + ", " +
                                              std::to_string(std::min(now.size, (i + 1) * now.object)) +
                                              ") of the file (object " + object_name(file_.id, i) +
                                              "): no copy matches its checksums");
                }
              }
              // Not under the mutex: it goes with the last of them.
              ended({});
            });
      });
    }
    return all.wait();
  }

  const rados_node_state& node_;
  rados_pool& pool_;
  file_snapshots& snapshots_;
  const librados& calls_;
  const node_call& call_;
  const file_shape& file_;
};

}  // namespace

failure keep_up(const rados_node_ptr& node, file_snapshots& snapshots, const node_call& call) {
  return upkeep(node, snapshots, call).run();
}

}  // namespace ooc::storage
