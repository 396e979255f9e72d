#include "storage/rados/object_transfer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <utility>

#include "storage/base/completion_counter.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/rados_node.hpp"

namespace ooc::storage {

namespace {

/// More than some hundred steps make an operation slower than two.
constexpr std::size_t most_runs = 512;

/// Contiguous bytes of an object.  One that comes from several regions has gaps, and memory of its own.
struct run {
  std::uint64_t begin = 0, end = 0;  // in the object
  std::vector<region> parts;         // node offsets
  std::vector<std::byte> sieve;
  std::size_t got = 0;
  int result = 0;
};

/// The runs of one operation.
struct object_runs {
  std::uint64_t number = 0;  // of the object
  std::uint64_t bytes = 0;
  std::vector<run> runs;
};

/// Regions with gaps of at most `most_gap` are one run.
std::vector<object_runs> by_object(const std::vector<region>& regions, std::uint64_t object, std::uint64_t most_gap) {
  std::vector<object_runs> all;
  for (region r : regions)
    while (r.length != 0) {
      const std::uint64_t number = r.node_offset / object, begin = r.node_offset % object;
      const region part{r.node_offset, r.memory_offset, std::min(r.length, object - begin)};
      const bool same = !all.empty() && all.back().number == number;
      run* last = same ? &all.back().runs.back() : nullptr;
      // Equal offsets in a read: the later region may end before the earlier one.
      if (last != nullptr && begin <= last->end + most_gap && most_gap != 0) {
        last->parts.push_back(part);
        last->end = std::max(last->end, begin + part.length);
      } else {
        if (!same || all.back().runs.size() == most_runs) all.push_back({number, 0, {}});
        all.back().runs.push_back({begin, begin + part.length, {part}, {}});
      }
      r.node_offset += part.length;
      r.memory_offset += part.length;
      r.length -= part.length;
    }
  for (object_runs& o : all)
    for (const run& r : o.runs) o.bytes += r.end - r.begin;
  return all;
}

void fill_rest(const file_shape& f, std::uint64_t at, std::span<std::byte> memory, std::size_t got) {
  if (got < memory.size()) fill_object_bytes(f, 0, at + got, memory.subspan(got));
}

/// What was read is in its places.
void deliver(const file_shape& f, std::uint64_t object, object_runs& o, std::byte* memory) {
  for (run& r : o.runs) {
    const std::uint64_t at = o.number * object + r.begin;
    if (r.sieve.empty()) {
      fill_rest(f, at, {memory + r.parts.front().memory_offset, r.parts.front().length}, r.got);
      continue;
    }
    fill_rest(f, at, r.sieve, r.got);
    for (const region& p : r.parts)
      std::memcpy(memory + p.memory_offset, r.sieve.data() + (p.node_offset - at), p.length);
  }
}

/// A write to one object.  One that has a fill value is made whole, with that everywhere, before the first byte of it
/// is written.
class object_write : public std::enable_shared_from_this<object_write> {
 public:
  object_write(rados_node_ptr node, shape_ptr file, object_runs what, const std::byte* memory, completion done)
      : node_(std::move(node)),
        file_(std::move(file)),
        what_(std::move(what)),
        memory_(memory),
        done_(std::move(done)) {}

  void start() { send(file_->fill.empty() || covers_all() ? as::it_comes : as::there_is); }

 private:
  enum class as { it_comes, there_is, new_one };

  std::uint64_t object() const { return object_bytes(file_->striping.sf); }
  bool covers_all() const { return what_.runs.size() == 1 && what_.bytes == object(); }

  void send(as how) {
    node_->pool->write(
        object_name(file_->id, what_.number), what_.bytes + (how == as::new_one ? object() : 0),
        described(io_kind::write, *file_),
        [self = shared_from_this(), how](rados_write_op_t op) { self->add_to(op, how); },
        [self = shared_from_this(), how](int rc) { self->ended(rc, how); });
  }

  void add_to(rados_write_op_t op, as how) {
    const librados& calls = node_->pool->calls();
    if (how == as::there_is) calls.write_op_assert_exists(op);
    if (how == as::new_one) {
      std::vector<std::byte> pattern(object());
      fill_object_bytes(*file_, 0, what_.number * object(), pattern);
      calls.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, nullptr);
      calls.write_op_write_full(op, reinterpret_cast<const char*>(pattern.data()), pattern.size());
    }
    for (const run& r : what_.runs) {
      const char* const from = reinterpret_cast<const char*>(memory_) + r.parts.front().memory_offset;
      if (covers_all())
        calls.write_op_write_full(op, from, r.end - r.begin);
      else
        calls.write_op_write(op, from, r.end - r.begin, r.begin);
    }
  }

  void ended(int rc, as how) {
    if (rc == -ENOENT && how == as::there_is) return send(as::new_one);
    if (rc == -EEXIST && how == as::new_one) return send(as::there_is);
    if (rc < 0) return done_(node_->failed(io_kind::write, *file_, rc));
    node_->counters().add(&io_stats::bytes_written, what_.bytes);
    node_->counters().add(&io_stats::device_writes, 1);
    node_->counters().add(&io_stats::device_bytes_written, what_.bytes);
    done_({});
  }

  const rados_node_ptr node_;
  const shape_ptr file_;
  const object_runs what_;
  const std::byte* const memory_;
  const completion done_;
};

/// After a write: bytes do not count that were written where another program has cut the file off, or to objects that
/// another is about to take away, as it gives the file others.
void check_written(const rados_node_ptr& node, const shape_ptr& file, std::uint64_t end, const completion& done) {
  read_file_object(
      *node->pool, file->id, described(io_kind::write, *file), [node, file, end, done](int rc, const file_object& now) {
        if (rc < 0) return done(node->failed(io_kind::write, *file, rc));
        // Of arrays the ranks know more than their file's size.
        const bool shorter = file->cuts != 0 && (now.cuts > file->cuts || now.size < end);
        const bool moves = file->generation < now.writes_since.value_or(0);
        if (!shorter && !moves) return done({});
        done({errc::cut_off, "pool '" + node->pool->where().pool + "' of RADOS: " + described(io_kind::write, *file) +
                                 (shorter ? ": another program has made it shorter since this one asked for its size"
                                          : ": the file has been given other objects, or is being given some, since "
                                            "this program opened it: open it again")});
      });
}

/// Nobody cuts off or moves what somebody has claimed to write and knows no cuts of: arrays.
bool may_be_lost(const file_shape& f) { return f.cuts != 0 || f.claim.since == 0; }

/// After a read of objects that are not there: they were never written, or went with their file.
void check_for_removal(const rados_node_ptr& node, const shape_ptr& file, const completion& done) {
  read_file_object(*node->pool, file->id, described(io_kind::read, *file), [node, file, done](int rc, auto&) {
    done(rc < 0 ? node->failed(io_kind::read, *file, rc, rc == -ENOENT ? "which has been removed" : "") : failure{});
  });
}

}  // namespace

std::string described(io_kind kind, const file_shape& f) { return "the " + name_of(kind) + " of '" + f.name + "'"; }

failure rados_node_state::failed(io_kind kind, const file_shape& f, int rc, const std::string& more) const {
  return pool->failed(rc, described(kind, f) + (more.empty() ? "" : ", " + more + ","));
}

failure rados_node_state::refused(io_kind kind, const file_shape& f, const std::string& why) const {
  return {errc::invalid_request, "store '" + pool->where().name() + "': " + described(kind, f) + ": " + why};
}

void read_regions(const rados_node_ptr& node, const shape_ptr& file, const std::vector<region>& regions,
                  std::byte* memory, completion done) {
  const std::uint64_t object = object_bytes(file->striping.sf);
  std::vector<object_runs> all = by_object(regions, object, max_sieved_gap);
  if (all.empty()) return done({});
  const auto any_missing = std::make_shared<std::atomic<bool>>(false);
  const auto when_read = [node, file, any_missing, done = std::move(done)](const failure& f) {
    if (f || !*any_missing || file->at_commit) return done(f);
    check_for_removal(node, file, done);
  };
  const auto counter = std::make_shared<completion_counter>(all.size(), when_read);
  for (object_runs& one : all) try {
      const auto o = std::make_shared<object_runs>(std::move(one));
      for (run& r : o->runs)
        if (r.parts.size() != 1) r.sieve.resize(r.end - r.begin);
      node->pool->read(
          object_name(file->id, o->number), o->bytes, described(io_kind::read, *file),
          [o, memory, &calls = node->pool->calls()](rados_read_op_t op) {
            for (run& r : o->runs) {
              std::byte* const to = r.sieve.empty() ? memory + r.parts.front().memory_offset : r.sieve.data();
              calls.read_op_read(op, r.begin, r.end - r.begin, reinterpret_cast<char*>(to), &r.got, &r.result);
            }
          },
          [node, file, o, memory, object, counter, any_missing](int rc) {
            const bool missing = rc == -ENOENT;
            if (missing) *any_missing = true;
            for (run& r : o->runs) {
              if (missing) r.got = 0;
              if (!missing && rc >= 0 && r.result < 0) rc = r.result;
            }
            if (rc < 0 && !missing) return counter->answer(node->failed(io_kind::read, *file, rc));
            deliver(*file, object, *o, memory);
            std::uint64_t wanted = 0;
            for (const run& r : o->runs)
              for (const region& p : r.parts) wanted += p.length;
            node->counters().add(&io_stats::bytes_read, wanted);
            node->counters().add(&io_stats::device_reads, 1);
            node->counters().add(&io_stats::device_bytes_read, o->bytes);
            counter->answer({});
          });
    } catch (const std::bad_alloc&) {  // it was not sent; others may be under way
      counter->answer(node->failed(io_kind::read, *file, -ENOMEM));
    }
}

void write_regions(const rados_node_ptr& node, const shape_ptr& file, const std::vector<region>& regions,
                   const std::byte* memory, completion done) {
  std::vector<object_runs> all = by_object(regions, object_bytes(file->striping.sf), 0);
  if (all.empty()) return done({});
  const auto when_written = [node, file, end = regions.back().node_end(), done = std::move(done)](const failure& f) {
    if (f || !may_be_lost(*file)) return done(f);
    check_written(node, file, end, done);
  };
  const auto counter = std::make_shared<completion_counter>(all.size(), when_written);
  for (object_runs& one : all) try {
      std::make_shared<object_write>(node, file, std::move(one), memory, [counter](const failure& f) {
        counter->answer(f);
      })->start();
    } catch (const std::bad_alloc&) {  // it was not sent; others may be under way
      counter->answer(node->failed(io_kind::write, *file, -ENOMEM));
    }
}

}  // namespace ooc::storage
