#include "storage/store/store_check.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/service/unpublished_file.hpp"

namespace ooc::storage {

namespace {

void collect(metadata_service& metadata, std::string_view path, std::vector<entry>& files) {
  for (entry& e : metadata.list(path)) {
    if (e.kind == entry_kind::folder) {
      collect(metadata, e.path, files);
    } else if (e.kind == entry_kind::file) {
      files.push_back(std::move(e));
    }
  }
}

struct share_outcome {
  failure f;
  verify_report report;

  bool damaged() const noexcept { return f || report.corrupt != 0 || report.lost != 0 || report.torn != 0; }
};

struct running_check {
  std::uint64_t bytes;
  std::uint32_t stripe_index;
  std::uint32_t node;
  std::future<share_outcome> outcome;
};

std::future<share_outcome> start_verify(io_service& node, const shape_ptr& shape, std::uint32_t stripe_index) {
  auto promise = std::make_shared<std::promise<share_outcome>>();
  auto future = promise->get_future();
  node.verify(shape, stripe_index, [promise](const failure& f, verify_report r) {
    promise->set_value({f, std::move(r)});
  });
  return future;
}

struct listing {
  failure f;
  std::vector<file_id> ids;
};

listing list_objects(io_service& node) {
  auto promise = std::make_shared<std::promise<listing>>();
  auto future = promise->get_future();
  node.list([promise](const failure& f, std::vector<file_id> ids) { promise->set_value({f, std::move(ids)}); });
  return future.get();
}

/// The file that has the place of `id` now, `id` itself where nothing has happened; 0: it was removed.
file_id now_in_place_of(store_core& core, file_id id) {
  try {
    return core.metadata().find(id).id;
  } catch (const error& e) {
    return e.code() == std::errc::no_such_file_or_directory ? 0 : id;
  }
}

/// Which bytes of the file are on the node.
std::string bytes_on(const entry& e, const running_check& r) {
  const striping& s = e.striping;
  const std::uint64_t first = s.file_offset(r.stripe_index, 0), end = std::min(first + s.sf, object_bytes(e));
  std::string text = "bytes [" + std::to_string(first) + ", " + std::to_string(end) + ") of the " +
                     (e.codec.empty() ? "file" : "packed file");
  if (r.bytes > s.sf)
    text += ", and as many from every " + std::to_string(s.sf * s.nn) + "th byte after " + std::to_string(first) +
            " on, " + std::to_string(r.bytes) + " in all";
  return text;
}

void check_file(store_core& core, const entry& e, check_result& result,
                const std::function<void(std::uint64_t)>& step) {
  opened_file now;  // other stripe objects than those of `e`, where it has been moved meanwhile
  try {
    entry found = core.metadata().find(e.id);
    if (found.commit)  // what it has now and what it had then are both looked at
      if (entry then = core.metadata().find(e.id, true); then.size > found.size) {
        found = std::move(then);
        found.at_commit = false;
      }
    now = core.opened(std::move(found));
  } catch (const error& x) {
    if (x.code() != std::errc::no_such_file_or_directory) result.problems.push_back(x.what());
    return;
  }
  const auto& nodes = core.nodes();
  const shape_ptr shape = now.file->shape_handle();
  const striping& s = now.meta.striping;
  std::vector<running_check> running;
  for (std::uint32_t t = 0; t < s.nn; ++t)
    if (const std::uint64_t bytes = s.object_size(t, object_bytes(now.meta)); bytes != 0) {
      const std::uint32_t node = node_of(s, shape->nodes, t, nodes.size());
      running.push_back({bytes, t, node, start_verify(*nodes[node], shape, t)});
    }
  std::vector<share_outcome> outcomes;
  for (running_check& r : running) {
    outcomes.push_back(r.outcome.get());
    step(r.bytes);
  }
  bool bad = false;
  for (const share_outcome& o : outcomes) bad = bad || o.damaged();
  if (const file_id id = bad ? now_in_place_of(core, now.meta.id) : now.meta.id; id != now.meta.id) {
    // Moved while it was being read: its new stripe objects are looked at.  Removed: it has no problem.
    if (id != 0) check_file(core, e, result, [](std::uint64_t) {});
    return;
  }
  ++result.files;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const share_outcome& o = outcomes[i];
    const std::string node = nodes[running[i].node]->name();
    const std::string where = "'" + e.path + "' on node " + std::to_string(running[i].node) + " (" + node + "): ";
    ++result.objects;
    if (o.damaged()) result.damaged.push_back({e.path, running[i].node, node});
    const bool gone = o.f.code == std::errc::no_such_file_or_directory;
    if (o.f) result.problems.push_back(where + o.f.what + (gone ? "; lost are " + bytes_on(now.meta, running[i]) : ""));
    if (gone) {
      ++result.lost_objects;
      result.lost += (running[i].bytes + chunk_size - 1) / chunk_size;
    } else if (o.f) {
      ++result.unread;
    }
    result.lost += o.report.lost;
    result.chunks += o.report.chunks;
    result.corrupt += o.report.corrupt;
    result.torn += o.report.torn;
    for (const std::string& p : o.report.problems) result.problems.push_back(where + p);
    if (o.report.torn != 0 && o.report.problems.empty())
      result.problems.push_back(where + std::to_string(o.report.torn) +
                                " chunks are torn: their overwrite was cut short by a crash; write "
                                "them again");
  }
}

}  // namespace

check_result check_store(store_core& core, std::string_view path,
                         const std::function<void(std::uint64_t, std::uint64_t)>& step) {
  check_result result;
  // Stripe objects first, entries after: see metadata_service::unfinished().
  std::vector<listing> objects;
  const bool whole = core.metadata().lookup(path).path.empty();
  if (whole)
    for (const auto& n : core.nodes()) objects.push_back(list_objects(*n));
  std::set<file_id> known;
  if (whole) {
    for (const file_id id : core.metadata().unfinished()) known.insert(id);
    for (const file_id id : core.metadata().files()) known.insert(id);
    for (const file_id id : core.metadata().dead()) known.insert(id);
  }
  for (std::uint32_t n = 0; n < objects.size(); ++n) {
    if (objects[n].f) result.problems.push_back(objects[n].f.what);
    for (const file_id id : objects[n].ids) {
      if (known.count(id) != 0) continue;
      result.orphans.push_back({n, id});
      result.problems.push_back("node " + core.nodes()[n]->name() + ": stripe object " + std::to_string(id) +
                                " belongs to no file");
    }
  }

  std::vector<entry> files;
  collect(core.metadata(), path, files);
  std::uint64_t total = 0, done = 0;
  for (const entry& e : files) total += object_bytes(e);
  step(0, total);
  for (const entry& e : files) check_file(core, e, result, [&](std::uint64_t bytes) { step(done += bytes, total); });
  return result;
}

namespace {

// Metadata that come from a copy do not know the numbers of later files.  They are used up here by empty files without
// a name, which have no stripe objects: new files would be given them, and meet what is there.
void use_up_numbers(store_core& core, file_id last) {
  for (file_id used = 0; used < last;) {
    new_file f;
    f.striping = {0, 1, chunk_size};
    const opened_file made = core.make(passing_path(""), f);
    used = made.meta.id;
    core.abandon(made);
    constexpr file_id most = 1'000'000;
    if (last > used + most)
      throw usage_error(errc::invalid_request, "a stripe object has the file number " + std::to_string(last) +
                                                   ", and the store has made " + std::to_string(used) +
                                                   " files: it is hardly of this store; move it away by hand");
  }
}

}  // namespace

void remove_orphans(store_core& core, const std::vector<check_result::orphan>& orphans) {
  file_id last = 0;
  for (const auto& o : orphans) last = std::max(last, o.id);
  use_up_numbers(core, last);
  for (const auto& o : orphans) {
    in_flight removal;
    auto gone = std::make_shared<file_shape>();
    gone->id = o.id;
    gone->capability = core.metadata().removal_capability(o.id);
    removal.start([&](const completion& ended) { core.nodes()[o.node]->remove(gone, ended); });
    const failure f = removal.wait();
    if (f && f.code != std::errc::no_such_file_or_directory) throw_if(f);
  }
}

}  // namespace ooc::storage
