#include "storage/striped_file.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <semaphore>
#include <utility>

#include "storage/gathering.hpp"
#include "storage/node_distances.hpp"
#include "storage/turns_touched.hpp"

namespace ooc::storage {

namespace {

using node_operation = std::function<void(io_service&, std::uint32_t turn, completion)>;

/// One operation on the nodes of `turns`, of which a number at a time is under way.
class scattering : public std::enable_shared_from_this<scattering> {
 public:
  scattering(striped_file::nodes all, shape_ptr shape, std::vector<std::uint32_t> turns,
             const char* doing, node_operation operation, completion done)
      : all_(std::move(all)),
        shape_(std::move(shape)),
        turns_(std::move(turns)),
        doing_(doing),
        operation_(std::move(operation)),
        gather_(turns_.size(), std::move(done)) {}

  /// Sends to `at_once` nodes; every answer, also a failure, sends to the next one.
  void start(std::size_t at_once) {
    for (std::size_t i = 0; i < at_once; ++i) send_next();
  }

 private:
  void send_next() {
    const std::size_t i = sent_.fetch_add(1, std::memory_order_relaxed);
    if (i >= turns_.size()) return;
    const std::uint32_t turn = turns_[i];
    const auto& node = all_[(shape_->striping.sn + std::size_t{turn}) % all_.size()];
    try {
      operation_(*node, turn, [self = shared_from_this()](const failure& f) { self->answer(f); });
    } catch (const std::exception& e) {
      // Nothing was sent, so nobody else answers for this node.
      answer({std::make_error_code(std::errc::io_error),
              "node " + node->name() + ": " + doing_ + " '" + shape_->name + "': " + e.what()});
    }
  }
  void answer(const failure& f) {
    send_next();
    gather_.answer(f);
  }

  const striped_file::nodes all_;
  const shape_ptr shape_;
  const std::vector<std::uint32_t> turns_;
  const char* const doing_;
  const node_operation operation_;
  gathering gather_;
  std::atomic<std::size_t> sent_{0};
};

/// Sends to the nodes of `turns`, `at_once` of them at a time, beginning with the first one of
/// `client`; `done` once when all have answered.
void scatter(const striped_file::nodes& all, const shape_ptr& shape, std::uint64_t client,
             std::vector<std::uint32_t> turns, const char* doing, node_operation operation,
             completion done, std::size_t at_once = std::numeric_limits<std::size_t>::max()) {
  if (turns.empty()) return done({});
  std::ranges::rotate(turns, turns.begin() + first_of_client(client, turns.size()));
  at_once = std::min(at_once, turns.size());
  std::make_shared<scattering>(all, shape, std::move(turns), doing, std::move(operation),
                               std::move(done))
      ->start(at_once);
}

/// How many of `nodes` answer a read of `bytes` at the same time.  What many nodes send to one
/// client meets in the last switch: from 32 nodes on, long reads go round in groups of 16 to 31.
std::size_t read_at_once(std::size_t nodes, std::uint64_t bytes) {
  constexpr std::size_t group = 16;
  constexpr std::uint64_t long_share = 256 << 10;
  if (nodes < 2 * group || bytes / nodes < long_share) return nodes;
  return nodes / (nodes / group);
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

std::ptrdiff_t first_of_client(std::uint64_t number, std::size_t nodes) {
  const auto golden = std::llround(0.618034 * static_cast<double>(nodes));
  // The nearest that has no factor in common with the nodes.
  long long step = golden;
  for (long long off = -1; std::gcd(step, nodes) != 1; off = off < 0 ? -off : -off - 1)
    step = golden + off;
  return static_cast<std::ptrdiff_t>(number % nodes * static_cast<std::uint64_t>(step) % nodes);
}

striped_file::striped_file(shape_ptr shape, nodes all, std::uint64_t client)
    : shape_(std::move(shape)), all_(std::move(all)), client_(client) {}

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
  std::vector<std::uint32_t> turns = turns_of(*r, *shape_);
  const std::size_t at_once = read_at_once(turns.size(), r->bytes());
  scatter(
      all_, shape_, client_, std::move(turns), "reading",
      [shape = shape_, r, memory](io_service& n, std::uint32_t turn, completion answered) {
        n.read(shape, turn, r, memory, std::move(answered));
      },
      std::move(done), at_once);
}

void striped_file::write(request_ptr r, const std::byte* memory, completion done) const {
  if (const failure f = past_end(*r, *shape_, "writing")) return done(f);
  scatter(
      all_, shape_, client_, turns_of(*r, *shape_), "writing",
      [shape = shape_, r, memory](io_service& n, std::uint32_t turn, completion answered) {
        n.write(shape, turn, r, memory, std::move(answered));
      },
      std::move(done));
}

void striped_file::sync(completion done) const {
  scatter(
      all_, shape_, client_, turns_with_bytes(*shape_), "syncing",
      [shape = shape_](io_service& n, std::uint32_t turn, completion answered) {
        n.sync(shape, turn, std::move(answered));
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
        all_, shape_, client_, turns_with_bytes(*shape_), "making",
        [shape = shape_](io_service& n, std::uint32_t turn, completion answered) {
          n.create(shape, turn, std::move(answered));
        },
        std::move(done));
  });
}

failure striped_file::advance_shares() const {
  return wait([&](completion done) {
    scatter(
        all_, shape_, client_, turns_with_bytes(*shape_), "opening",
        [shape = shape_](io_service& n, std::uint32_t turn, completion answered) {
          n.advance(shape, turn, std::move(answered));
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
        all_, shape_, client_, turns, "resizing",
        [shape = shape_, old_size](io_service& n, std::uint32_t turn, completion answered) {
          n.resize(shape, turn, old_size, std::move(answered));
        },
        std::move(done));
  });
}

failure striped_file::remove_shares() const {
  return wait([&](completion done) {
    scatter(
        all_, shape_, client_, every_turn(*shape_), "removing",
        [shape = shape_](io_service& n, std::uint32_t, completion answered) {
          // A share that is not there (never made, or swept by another process) is as good as
          // removed.
          n.remove(shape, [answered = std::move(answered)](const failure& f) {
            answered(f.code == std::errc::no_such_file_or_directory ? failure{} : f);
          });
        },
        std::move(done));
  });
}

}  // namespace ooc::storage
