#include "storage/service/striped_file.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "storage/base/completion_counter.hpp"
#include "storage/base/in_flight.hpp"
#include "storage/base/mutex.hpp"
#include "storage/layout/touched_nodes.hpp"
#include "storage/service/node_locality.hpp"

namespace ooc::storage {

namespace {

/// One call to the nodes of `stripe_indexes`, of which a number at a time is under way.
class fan_out : public std::enable_shared_from_this<fan_out> {
 public:
  fan_out(striped_file::nodes all, std::vector<std::uint32_t> stripe_indexes, node_call call, completion done)
      : all_(std::move(all)),
        stripe_indexes_(std::move(stripe_indexes)),
        call_(std::move(call)),
        counter_(stripe_indexes_.size(), std::move(done)) {}

  /// Sends to `at_once` nodes; every answer, also a failure, sends to the next one.
  void start(std::size_t at_once) {
    for (std::size_t i = 0; i < at_once; ++i) send_next();
  }

 private:
  void send_next() {
    const std::size_t i = sent_.fetch_add(1, std::memory_order_relaxed);
    if (i >= stripe_indexes_.size()) return;
    const auto& node = all_[node_of(call_.file->striping, call_.file->nodes, stripe_indexes_[i], all_.size())];
    try {
      node_call call = call_;
      if (call.kind != io_kind::remove) call.stripe_index = stripe_indexes_[i];
      node->answer(std::move(call), [self = shared_from_this(), i](const failure& f) { self->answer(i, f); });
    } catch (const std::exception& e) {
      // Nothing was sent, so nobody else answers for this node.
      answer(i, {std::make_error_code(std::errc::io_error),
                 "node " + node->name() + ": " + name_of(call_.kind) + " of '" + call_.file->name + "': " + e.what()});
    }
  }
  void answer(std::size_t i, const failure& f) {
    send_next();
    counter_.answer(f.code == std::errc::no_such_file_or_directory && may_be_gone(stripe_indexes_[i]) ? failure{} : f);
  }
  // A stripe object that is not there (never made, or swept by another process) is as good as removed.  Those of files
  // with commits stay where the file has become shorter.
  bool may_be_gone(std::uint32_t stripe_index) const {
    if (call_.kind == io_kind::remove) return true;
    return call_.file->commits && call_.file->striping.object_size(stripe_index, call_.file->size) == 0;
  }

  const striped_file::nodes all_;
  const std::vector<std::uint32_t> stripe_indexes_;
  const node_call call_;
  completion_counter counter_;
  std::atomic<std::size_t> sent_{0};
};

/// Sends to the nodes of `stripe_indexes`, `at_once` of them at a time, beginning with the first one of
/// `client`; `done` once when all have answered.
void fan_out_to(const striped_file::nodes& all, std::uint64_t client, std::vector<std::uint32_t> stripe_indexes,
                node_call call, completion done, std::size_t at_once = std::numeric_limits<std::size_t>::max()) {
  if (stripe_indexes.empty()) return done({});
  std::rotate(stripe_indexes.begin(), stripe_indexes.begin() + first_of_client(client, stripe_indexes.size()),
              stripe_indexes.end());
  at_once = std::min(at_once, stripe_indexes.size());
  std::make_shared<fan_out>(all, std::move(stripe_indexes), std::move(call), std::move(done))->start(at_once);
}

/// How many of `nodes` answer a read of `bytes` at the same time.  What many nodes send to one
/// client meets in the last switch: from 32 nodes on, long reads go round in groups of 16 to 31.
std::size_t read_at_once(std::size_t nodes, std::uint64_t bytes) {
  constexpr std::size_t group = 16;
  constexpr std::uint64_t long_object = 256 << 10;
  if (nodes < 2 * group || bytes / nodes < long_object) return nodes;
  return nodes / (nodes / group);
}

std::vector<std::uint32_t> every_stripe_index(const file_shape& shape) {
  std::vector<std::uint32_t> stripe_indexes(shape.striping.nn);
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t) stripe_indexes[t] = t;
  return stripe_indexes;
}

/// Those that hold at least one byte of the file: only they have a stripe object.
std::vector<std::uint32_t> stripe_indexes_with_bytes(const file_shape& shape) {
  std::vector<std::uint32_t> stripe_indexes;
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t)
    if (shape.striping.object_size(t, shape.size) != 0) stripe_indexes.push_back(t);
  return stripe_indexes;
}

std::vector<std::uint32_t> stripe_indexes_of(const request& r, const file_shape& shape) {
  const std::vector<bool> touched = touched_stripe_indexes(r, shape.striping);
  std::vector<std::uint32_t> stripe_indexes;
  for (std::uint32_t t = 0; t < shape.striping.nn; ++t)
    if (touched[t]) stripe_indexes.push_back(t);
  return stripe_indexes;
}

/// Where that is plain to see: the only node that the request touches.
std::optional<std::uint32_t> only_stripe_index_of(const request& r, const striping& s) {
  if (s.nn == 1 && !r.empty()) return 0;
  if (r.entries().size() != 1 || r.entries().front().depth != 0) return std::nullopt;
  const nested_request& run = r.entries().front();
  const std::uint64_t stripe = run.file_offset / s.sf;
  if (run.run == 0 || (run.file_offset + run.run - 1) / s.sf != stripe) return std::nullopt;
  return static_cast<std::uint32_t>(stripe % s.nn);
}

failure past_end(const request& r, const file_shape& shape, const char* doing) {
  if (r.file_end() <= shape.size) return {};
  return {errc::invalid_request, std::string(doing) + " '" + shape.name + "': the request ends at byte " +
                                     std::to_string(r.file_end()) + ", the file at byte " + std::to_string(shape.size)};
}

/// Starts an asynchronous operation and waits for its end.
template <class Start>
failure wait(Start&& start) {
  in_flight operation;
  operation.start(start);
  return operation.wait();
}

}  // namespace

std::ptrdiff_t first_of_client(std::uint64_t number, std::size_t nodes) {
  const auto golden = std::llround(0.618034 * static_cast<double>(nodes));
  // The nearest that has no factor in common with the nodes.
  long long step = golden;
  for (long long off = -1; std::gcd(step, nodes) != 1; off = off < 0 ? -off : -off - 1) step = golden + off;
  return static_cast<std::ptrdiff_t>(number % nodes * static_cast<std::uint64_t>(step) % nodes);
}

/// Where a file is that was moved while it was open; outlives it as long as calls look for it.
class striped_file::moved_place {
 public:
  explicit moved_place(finder find) : find_(std::move(find)) {}

  /// Null: as far as is known it is where it was.
  const striped_file* known() const noexcept { return known_.load(std::memory_order_acquire); }

  /// `here`: the file that was open.
  static void look(std::shared_ptr<moved_place> self, file_id here, std::function<void(const striped_file*)> found) {
    if (const striped_file* there = self->known()) return found(there);
    const finder& find = self->find_;
    find([self = std::move(self), here, found = std::move(found)](const std::shared_ptr<const striped_file>& there) {
      if (there && there->shape().id != here) self->keep(there);
      found(self->known() != nullptr ? self->known() : there.get());
    });
  }

 private:
  void keep(std::shared_ptr<const striped_file> there) {
    const lock_guard lock(mutex_);
    if (there_) return;
    there_ = std::move(there);
    known_.store(there_.get(), std::memory_order_release);
  }

  const finder find_;
  mutex mutex_;
  std::shared_ptr<const striped_file> there_ OOC_GUARDED_BY(mutex_);
  std::atomic<const striped_file*> known_{nullptr};
};

namespace {

/// The stripe objects are not there, or are none any more, or the right to them has ended with them.
bool may_have_moved(const failure& f) {
  return f.code == std::errc::no_such_file_or_directory || f.code == errc::corrupt ||
         f.code == std::errc::bad_message || f.code == std::errc::permission_denied;
}

failure was_moved(const file_shape& shape) {
  return {errc::cut_off, "writing '" + shape.name +
                             "': it has been given other stripe objects since this program "
                             "opened it; open it again"};
}

}  // namespace

striped_file::striped_file(shape_ptr shape, nodes all, std::uint64_t client, finder find,
                           std::shared_ptr<unpacked_file> unpacked)
    : shape_(std::move(shape)),
      all_(std::move(all)),
      client_(client),
      moved_(find ? std::make_shared<moved_place>(std::move(find)) : nullptr),
      unpacked_(std::move(unpacked)) {}

template <class Repeat>
completion striped_file::looking_elsewhere(Repeat repeat, completion done, bool here_too) const {
  return [moved = moved_, here = shape_->id, repeat = std::move(repeat), done = std::move(done),
          here_too](const failure& f) {
    if (!may_have_moved(f)) return done(f);
    const bool stays = here_too && f.code == std::errc::no_such_file_or_directory;
    moved_place::look(moved, here, [repeat, done, f, here, stays](const striped_file* there) {
      if (there && (stays || there->shape().id != here))
        repeat(*there, done);
      else
        done(f);
    });
  };
}

io_service& striped_file::node(std::uint32_t stripe_index) const {
  return *all_[node_of(shape_->striping, shape_->nodes, stripe_index, all_.size())];
}

locality striped_file::farthest_node() const {
  if (const auto known = farthest_.load()) return *known;
  nodes mine;
  for (const std::uint32_t node : nodes_of(shape_->striping, shape_->nodes, all_.size())) mine.push_back(all_[node]);
  locality farthest = locality::none;
  for (const known_locality& d : localities_of(mine)) {
    if (d.failed) return locality::network;
    farthest = std::max(farthest, d.far);
  }
  farthest_ = farthest;
  return farthest;
}

void striped_file::read(request_ptr r, std::byte* memory, completion done) const {
  if (!moved_) return read_here(std::move(r), memory, std::move(done));
  if (const striped_file* there = moved_->known()) return there->read(std::move(r), memory, std::move(done));
  read_here(r, memory,
            looking_elsewhere(
                [r, memory, shape = shape_](const striped_file& there, completion end) {
                  if (there.shape().id != shape->id) return there.read(r, memory, std::move(end));
                  auto known = std::make_shared<file_shape>(*shape);
                  known->still_there = true;
                  striped_file(std::move(known), there.all_, there.client_).read_here(r, memory, std::move(end));
                },
                std::move(done), true));
}

void striped_file::read_here(request_ptr r, std::byte* memory, completion done) const {
  if (unpacked_) return unpacked_->read(std::move(r), memory, std::move(done));
  if (const failure f = past_end(*r, *shape_, "reading")) return done(f);
  if (const auto only = only_stripe_index_of(*r, shape_->striping))
    return node(*only).read(shape_, *only, std::move(r), memory, std::move(done));
  std::vector<std::uint32_t> stripe_indexes = stripe_indexes_of(*r, *shape_);
  const std::size_t at_once = read_at_once(stripe_indexes.size(), r->bytes());
  fan_out_to(all_, client_, std::move(stripe_indexes), {io_kind::read, shape_, 0, std::move(r), memory},
             std::move(done), at_once);
}

void striped_file::write(request_ptr r, const std::byte* memory, completion done) const {
  if (!moved_) return write_here(std::move(r), memory, std::move(done));
  if (moved_->known() != nullptr) return done(was_moved(*shape_));
  write_here(std::move(r), memory,
             looking_elsewhere([shape = shape_](const striped_file&, const completion& end) { end(was_moved(*shape)); },
                               std::move(done)));
}

void striped_file::write_here(request_ptr r, const std::byte* memory, completion done) const {
  if (unpacked_) return done(unpacked_->refused_write());
  if (const failure f = past_end(*r, *shape_, "writing")) return done(f);
  if (const auto only = only_stripe_index_of(*r, shape_->striping))
    return node(*only).write(shape_, *only, std::move(r), memory, std::move(done));
  std::vector<std::uint32_t> stripe_indexes = stripe_indexes_of(*r, *shape_);
  fan_out_to(all_, client_, std::move(stripe_indexes),
             {io_kind::write, shape_, 0, std::move(r), const_cast<std::byte*>(memory)}, std::move(done));
}

void striped_file::sync(completion done) const {
  if (!moved_) return sync_here(std::move(done));
  if (const striped_file* there = moved_->known()) return there->sync(std::move(done));
  sync_here(looking_elsewhere([](const striped_file& there, completion end) { there.sync(std::move(end)); },
                              std::move(done)));
}

void striped_file::sync_here(completion done) const {
  fan_out_to(all_, client_, stripe_indexes_with_bytes(*shape_), {io_kind::sync, shape_}, std::move(done));
}

failure striped_file::read(const request& r, std::byte* memory) const {
  return wait([&](completion done) { read(std::make_shared<const request>(r), memory, std::move(done)); });
}

failure striped_file::write(const request& r, const std::byte* memory) const {
  return wait([&](completion done) { write(std::make_shared<const request>(r), memory, std::move(done)); });
}

failure striped_file::sync() const {
  return wait([&](completion done) { sync(std::move(done)); });
}

failure striped_file::flush() const {
  for (const std::uint32_t i : stripe_indexes_with_bytes(*shape_))
    if (failure f = wait([&](completion done) { node(i).flush(std::move(done)); })) return f;
  return {};
}

void striped_file::forget() const {
  for (const std::uint32_t i : every_stripe_index(*shape_)) node(i).forget();
}

failure striped_file::ask(std::vector<std::uint32_t> stripe_indexes, node_call call) const {
  return wait(
      [&](completion done) { fan_out_to(all_, client_, std::move(stripe_indexes), std::move(call), std::move(done)); });
}

failure striped_file::create_objects() const {
  return ask(stripe_indexes_with_bytes(*shape_), {io_kind::create, shape_});
}

failure striped_file::advance_objects() const {
  return ask(shape_->commits ? every_stripe_index(*shape_) : stripe_indexes_with_bytes(*shape_),
             {io_kind::advance, shape_});
}

failure striped_file::resize_objects(std::uint64_t old_size) const {
  const striping& s = shape_->striping;
  std::vector<std::uint32_t> stripe_indexes;
  for (std::uint32_t t = 0; t < s.nn; ++t)
    if (s.object_size(t, old_size) != s.object_size(t, shape_->size)) stripe_indexes.push_back(t);
  return ask(std::move(stripe_indexes), {io_kind::resize, shape_, 0, {}, nullptr, old_size});
}

failure striped_file::permit_objects() const { return ask(every_stripe_index(*shape_), {io_kind::permit, shape_}); }

failure striped_file::remove_objects() const { return ask(every_stripe_index(*shape_), {io_kind::remove, shape_}); }

void striped_file::prepare_objects(completion done) const {
  fan_out_to(all_, client_, every_stripe_index(*shape_), {io_kind::prepare, shape_}, std::move(done));
}

failure striped_file::roll_back_objects() const {
  return ask(every_stripe_index(*shape_), {io_kind::roll_back, shape_});
}

void striped_file::trim_objects(completion done) const {
  fan_out_to(all_, client_, stripe_indexes_with_bytes(*shape_), {io_kind::trim, shape_}, std::move(done));
}

failure striped_file::clone_objects(const shape_ptr& into, bool copies) const {
  return ask(stripe_indexes_with_bytes(*shape_),
             {.kind = io_kind::clone, .file = shape_, .into = into, .copies = copies});
}

std::vector<std::vector<byte_interval>> striped_file::find_changes(std::uint64_t since) const {
  std::vector<std::vector<byte_interval>> found(shape_->striping.nn);
  in_flight asked;
  for (const std::uint32_t t : stripe_indexes_with_bytes(*shape_))
    asked.start([&](completion done) {
      node(t).find_changes(shape_, t, since, [&to = found[t], done = std::move(done)](const failure& f, auto ranges) {
        to = std::move(ranges);
        done(f);
      });
    });
  throw_if(asked.wait());
  return found;
}

std::unique_ptr<const striped_file::reader> striped_file::reader::of(const striped_file& f) {
  if (f.unpacked_) return nullptr;
  auto r = std::make_unique<reader>();
  r->shape_ = f.shape_;
  for (std::uint32_t i = 0; i < f.shape().striping.nn; ++i) {
    r->nodes_.push_back(f.node(i).reader_of(f.shape_, i));
    if (!r->nodes_.back()) return nullptr;
  }
  return r;
}

bool striped_file::reader::read(std::uint64_t file_offset, std::byte* memory, std::size_t bytes) const noexcept {
  const striping& s = shape_->striping;
  if (file_offset + bytes > shape_->size || file_offset % s.sf + bytes > s.sf) return false;
  return nodes_[s.stripe_index_of(file_offset)]->read(s.node_offset(file_offset), memory, bytes);
}

}  // namespace ooc::storage
