#include "storage/rados/rados_node.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "storage/base/job_threads.hpp"
#include "storage/layout/regions.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/file_snapshots.hpp"
#include "storage/rados/object_transfer.hpp"
#include "storage/rados/object_upkeep.hpp"

namespace ooc::storage {

namespace {

class node_in_pool final : public rados_node {
 public:
  explicit node_in_pool(const std::shared_ptr<rados_pool>& pool)
      : state_(std::make_shared<rados_node_state>(pool)), snapshots_(std::make_shared<file_snapshots>(pool)) {}

  std::string name() const override { return state_->pool->where().name(); }
  io_stats stats() const override { return state_->own.snapshot(); }
  std::uint64_t staging_bytes() const override { return 0; }
  std::optional<node_space> space() const override { return state_->pool->space(); }
  void forget() override { snapshots_->forget_writers(); }

  void answer(node_call call, completion done) override {
    switch (call.kind) {
      case io_kind::read:
      case io_kind::write: return transfer_request(call, std::move(done));
      case io_kind::sync: state_->own.add(&io_stats::syncs, 1); return done({});  // it is durable already
      case io_kind::permit:
      case io_kind::trim: return done({});  // a commit gives back the snapshot of the one before
      case io_kind::find_locality: call.answer->distance = locality::network; return done({});
      case io_kind::list:
        return post(
            upkeep_, [state = state_, call] { return list(*state, call); }, std::move(done));
      case io_kind::create:
      case io_kind::remove:
      case io_kind::advance:
      case io_kind::verify:
      case io_kind::find_changes:
      case io_kind::clone: return post(upkeep_, run_upkeep(call), std::move(done));
      case io_kind::resize: return post(call.file->commits ? commits_ : upkeep_, run_upkeep(call), std::move(done));
      case io_kind::prepare:
      case io_kind::roll_back: return post(commits_, run_upkeep(call), std::move(done));
    }
  }

  void transfer(io_kind kind, const shape_ptr& file, std::vector<region> regions, std::byte* memory,
                completion done) override {
    if (!file->commits || (kind == io_kind::read && !file->at_commit))
      return carry_out(state_, kind, file, regions, memory, std::move(done));
    if (const auto objects = snapshots_->cached(*file))
      return carry_out(std::make_shared<rados_node_state>(objects, state_), kind, file, regions, memory,
                       std::move(done));
    // The first writes after a commit wait for it to be said that there are some, one after another.
    auto opened = std::make_shared<std::shared_ptr<rados_pool>>();
    post(
        commits_, [opened, snapshots = snapshots_, file] { return *opened = snapshots->open(*file), failure{}; },
        [this_state = state_, opened, kind, file, regions = std::move(regions), memory, done](const failure& why) {
          if (why) return done(why);
          carry_out(std::make_shared<rados_node_state>(*opened, this_state), kind, file, regions, memory, done);
        });
  }

 private:
  std::function<failure()> run_upkeep(const node_call& call) const {
    return [state = state_, snapshots = snapshots_, call] { return keep_up(state, *snapshots, call); };
  }

  template <class Work>
  static void post(job_threads<>& threads, Work work, completion done) {
    threads.post([work = std::move(work), done = std::move(done)] {
      failure f;
      try {
        f = work();
      } catch (const error& e) {
        f = {e.code(), e.what()};
      } catch (const std::bad_alloc&) {
        f = {std::make_error_code(std::errc::not_enough_memory), "there is no memory for a call to RADOS"};
      }
      done(f);
    });
  }

  void transfer_request(const node_call& call, completion done) {
    const file_shape& f = *call.file;
    // Where it has been cut off there is the fill value.
    if (call.wanted->file_end() > f.size && !(call.kind == io_kind::read && f.cuts != 0))
      return done(state_->refused(call.kind, f,
                                  "the request ends at byte " + std::to_string(call.wanted->file_end()) +
                                      ", the file at " + std::to_string(f.size)));
    std::vector<region> regions;
    object_regions(*call.wanted, f.striping, call.stripe_index, regions);
    transfer(call.kind, call.file, std::move(regions), call.memory, std::move(done));
  }

  /// `node`: that reaches the file's objects as it is to.
  static void carry_out(const rados_node_ptr& node, io_kind kind, const shape_ptr& file,
                        const std::vector<region>& regions, std::byte* memory, completion done) {
    const bool reads = kind == io_kind::read;
    node->counters().add(reads ? &io_stats::read_requests : &io_stats::write_requests, 1);
    node->counters().add(reads ? &io_stats::read_regions : &io_stats::write_regions, node_runs(regions));
    if (file->at_commit) done = if_kept(node, file, std::move(done));
    if (reads) return read_regions(node, file, regions, memory, std::move(done));
    if (overlap(regions)) return done(node->refused(kind, *file, "regions of the request overlap in the file"));
    write_regions(node, file, regions, memory, std::move(done));
  }

  /// After a read of a commit: its snapshot was there until then.
  static completion if_kept(const rados_node_ptr& node, const shape_ptr& file, completion done) {
    return [node, file, done = std::move(done)](const failure& f) {
      if (f) return done(f);
      read_file_object(*node->node->pool, file->id, described(io_kind::read, *file),
                       [node, file, done](int rc, const file_object& now) {
                         if (rc < 0) return done(node->failed(io_kind::read, *file, rc));
                         if (snapshot_of(now, file->commit) != 0) return done({});
                         done(commit_is_gone(*file));
                       });
    };
  }

  static failure list(const rados_node_state& state, const node_call& call) {
    std::set<file_id> ids;
    state.pool->for_each_object([&](const std::string& name) {
      if (const file_id id = file_of(name); id != 0) ids.insert(id);
      return true;
    });
    call.answer->ids.assign(ids.begin(), ids.end());
    return {};
  }

  const rados_node_ptr state_;
  const std::shared_ptr<file_snapshots> snapshots_;
  job_threads<> upkeep_{2};
  job_threads<> commits_{1};  ///< what changes the objects of files with commits, one after another
};

}  // namespace

std::shared_ptr<rados_node> make_rados_node(std::shared_ptr<rados_pool> pool) {
  return std::make_shared<node_in_pool>(std::move(pool));
}

}  // namespace ooc::storage
