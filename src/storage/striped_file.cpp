#include "storage/striped_file.hpp"

#include <algorithm>
#include <functional>
#include <random>
#include <semaphore>
#include <utility>

#include "storage/gathering.hpp"
#include "storage/node_distances.hpp"
#include "storage/turns_touched.hpp"

namespace ooc::storage {

namespace {

using node_operation = std::function<void(io_service&, std::uint32_t turn, completion)>;

/// Where this process begins among the nodes: processes that begin a step at the same time would
/// else all send to the same node first, then all to the next one.
std::size_t first_of_this_process() {
  static const std::size_t first = std::random_device{}();
  return first;
}

/// Sends to the nodes of `turns`, all at once; `done` once when all have answered.
void scatter(const striped_file::nodes& all, const shape_ptr& shape,
             const std::vector<std::uint32_t>& turns, const char* doing,
             const node_operation& operation, completion done) {
  if (turns.empty()) return done({});
  const auto gather = std::make_shared<gathering>(turns.size(), std::move(done));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::uint32_t turn = turns[(first_of_this_process() + i) % turns.size()];
    const auto& node = all[(shape->striping.sn + std::size_t{turn}) % all.size()];
    try {
      operation(*node, turn, [gather](const failure& f) { gather->answer(f); });
    } catch (const std::exception& e) {
      // Nothing was sent, so nobody else answers for this node.
      gather->answer(
          {std::make_error_code(std::errc::io_error),
           "node " + node->name() + ": " + doing + " '" + shape->name + "': " + e.what()});
    }
  }
}

std::vector<std::uint32_t> every_turn(const file_shape& shape) {
  std::vector<std::uint32_t> turns(shape.striping.nn);
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t) turns[t] = t;
  return turns;
}

/// Those that hold at least one byte of the file: only they have a share.
std::vector<std::uint32_t> turns_with_bytes(const file_shape& shape) {
  std::vector<std::uint32_t> turns;
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t)
    if (shape.striping.share_size(t, shape.size) != 0) turns.push_back(t);
  return turns;
}

std::vector<std::uint32_t> turns_of(const request& r, const file_shape& shape) {
  const std::vector<bool> touched = turns_touched(r, shape.striping);
  std::vector<std::uint32_t> turns;
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t)
    if (touched[t]) turns.push_back(t);
  return turns;
}

failure past_end(const request& r, const file_shape& shape, const char* doing) {
  if (r.file_end() <= shape.size) return {};
  return {errc::invalid_request, std::string(doing) + " '" + shape.name +
                                     "': the request ends at byte " + std::to_string(r.file_end()) +
                                     ", the file at byte " + std::to_string(shape.size)};
}

/// Starts an asynchronous operation and waits for its end.
template <class Start>
failure wait(Start&& start) {
  struct outcome {
    std::binary_semaphore ready{0};
    failure result;
  };
  // Shared: the completing thread may still be inside release() when the waiter has left.
  const auto o = std::make_shared<outcome>();
  start([o](const failure& f) {
    o->result = f;
    o->ready.release();
  });
  o->ready.acquire();
  return std::move(o->result);
}

}  // namespace

striped_file::striped_file(shape_ptr shape, nodes all)
    : shape_(std::move(shape)), all_(std::move(all)) {}

io_service& striped_file::node(std::uint32_t turn) const {
  return *all_[(shape_->striping.sn + std::uint64_t{turn}) % all_.size()];
}

distance striped_file::farthest_node() const {
  if (const auto known = farthest_.load()) return *known;
  nodes mine;
  for (std::uint32_t turn = 0; turn < shape_->striping.nn; ++turn)
    mine.push_back(all_[(shape_->striping.sn + std::uint64_t{turn}) % all_.size()]);
  distance farthest = distance::none;
  for (const known_distance& d : distances_of(mine)) {
    if (d.failed) return distance::network;
    farthest = std::max(farthest, d.far);
  }
  farthest_ = farthest;
  return farthest;
}

void striped_file::read(request_ptr r, std::byte* memory, completion done) const {
  if (const failure f = past_end(*r, *shape_, "reading")) return done(f);
  scatter(
      all_, shape_, turns_of(*r, *shape_), "reading",
      [&](io_service& n, std::uint32_t turn, completion answered) {
        n.read(shape_, turn, r, memory, std::move(answered));
      },
      std::move(done));
}

void striped_file::write(request_ptr r, const std::byte* memory, completion done) const {
  if (const failure f = past_end(*r, *shape_, "writing")) return done(f);
  scatter(
      all_, shape_, turns_of(*r, *shape_), "writing",
      [&](io_service& n, std::uint32_t turn, completion answered) {
        n.write(shape_, turn, r, memory, std::move(answered));
      },
      std::move(done));
}

void striped_file::sync(completion done) const {
  scatter(
      all_, shape_, turns_with_bytes(*shape_), "syncing",
      [&](io_service& n, std::uint32_t turn, completion answered) {
        n.sync(shape_, turn, std::move(answered));
      },
      std::move(done));
}

failure striped_file::read(const request& r, std::byte* memory) const {
  return wait(
      [&](completion done) { read(std::make_shared<const request>(r), memory, std::move(done)); });
}

failure striped_file::write(const request& r, const std::byte* memory) const {
  return wait(
      [&](completion done) { write(std::make_shared<const request>(r), memory, std::move(done)); });
}

failure striped_file::sync() const {
  return wait([&](completion done) { sync(std::move(done)); });
}

failure striped_file::create_shares() const {
  return wait([&](completion done) {
    scatter(
        all_, shape_, turns_with_bytes(*shape_), "making",
        [&](io_service& n, std::uint32_t turn, completion answered) {
          n.create(shape_, turn, std::move(answered));
        },
        std::move(done));
  });
}

failure striped_file::resize_shares(std::uint64_t old_size) const {
  const striping& s = shape_->striping;
  std::vector<std::uint32_t> turns;
  for (std::uint32_t t = 0; t < s.nn; ++t)
    if (s.share_size(t, old_size) != s.share_size(t, shape_->size)) turns.push_back(t);
  return wait([&](completion done) {
    scatter(
        all_, shape_, turns, "resizing",
        [&](io_service& n, std::uint32_t turn, completion answered) {
          n.resize(shape_, turn, old_size, std::move(answered));
        },
        std::move(done));
  });
}

failure striped_file::remove_shares() const {
  return wait([&](completion done) {
    scatter(
        all_, shape_, every_turn(*shape_), "removing",
        [&](io_service& n, std::uint32_t, completion answered) {
          // A share that is not there (never made, or swept by another process) is as good as
          // removed.
          n.remove(shape_, [answered = std::move(answered)](const failure& f) {
            answered(f.code == std::errc::no_such_file_or_directory ? failure{} : f);
          });
        },
        std::move(done));
  });
}

}  // namespace ooc::storage
