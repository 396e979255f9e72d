#include "storage/rados/gateway_node.hpp"

#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "storage/base/mutex.hpp"
#include "storage/base/ticker.hpp"
#include "storage/rados/file_fences.hpp"
#include "storage/rados/object_transfer.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/service/gateways.hpp"

namespace ooc::storage {

namespace {

using namespace std::chrono_literals;
using turn = file_fences::turn;

/// How often it looks whether it is still in its place, and how full RADOS is.
constexpr auto look_every = 2s;

class gateway final : public gateway_node, public std::enable_shared_from_this<gateway> {
 public:
  gateway(const std::shared_ptr<rados_pool>& pool, std::uint32_t number, std::function<void(const std::string&)> lost)
      : pool_(pool),
        number_(number),
        description_(take_gateway(*pool, number)),
        node_(make_rados_node(pool->other_pool(description_.data))),
        fences_(std::make_shared<file_fences>(pool->other_pool(description_.data))),
        lost_(std::move(lost)) {
    watch_.wake();
  }
  ~gateway() override { watch_.stop(); }

  const std::string& store_uuid() const override { return description_.uuid; }
  void set_gateways(std::uint32_t count) override { gateways_ = count; }
  void set_store(const std::string&) override {}  // that of the pool

  std::string name() const override { return node_->name() + ", gateway " + std::to_string(number_); }
  io_stats stats() const override { return node_->stats(); }
  std::uint64_t staging_bytes() const override { return rados_pool::most_in_flight; }
  std::optional<node_space> space() const override {
    const lock_guard lock(mutex_);
    return space_;
  }
  load present_load() const override { return {0, running_}; }
  /// RADOS takes requests as they come; the shares of clients are those of the server's memory.
  std::shared_ptr<served_node> on_behalf_of(request_origin) override { return shared_from_this(); }

  void read_part(shape_ptr file, std::uint32_t, io_part part, std::byte* memory, std::uint32_t* sums, checking,
                 completion done) override {
    auto ended = [part, memory, sums, done = counted(std::move(done))](const failure& f) {
      if (!f) compute_sums(part, memory, sums);
      done(f);
    };
    node_->transfer(io_kind::read, file, part.regions, memory, std::move(ended));
  }
  bool read_inline(const file_shape&, std::uint32_t, const io_part&, std::byte*, std::uint32_t*) override {
    return false;
  }

  void write_part(shape_ptr file, std::uint32_t, io_part part, const std::byte* memory, const std::uint32_t* sums,
                  completion done) override {
    if (!sums_match(part, memory, sums))
      return done({std::make_error_code(std::errc::bad_message),
                   name() + ": " + described(io_kind::write, *file) + ": bytes were changed on their way here"});
    enter(file, io_kind::write, counted(std::move(done)),
          [this, file, part = std::move(part), memory](const file_fence&, const completion& ended) {
            node_->transfer(io_kind::write, file, part.regions, const_cast<std::byte*>(memory), ended);
          });
  }

  void answer(node_call call, completion done) override {
    done = counted(std::move(done));
    switch (call.kind) {
      case io_kind::write:
      case io_kind::prepare:
      case io_kind::roll_back:
        return enter(call.file, call.kind, std::move(done),
                     [this, call](const file_fence&, const completion& ended) { node_->answer(call, ended); });
      case io_kind::remove:
        return enter(call.file, call.kind, std::move(done), [this, call](const file_fence&, const completion& ended) {
          fences_->forget(call.file->id);
          node_->answer(call, ended);
        });
      case io_kind::advance:
        return enter(call.file, call.kind, std::move(done),
                     [this, call](const file_fence& now, const completion& ended) { advance(call, now, ended); });
      case io_kind::resize:
        return enter(call.file, call.kind, std::move(done),
                     [this, call](const file_fence& now, const completion& ended) { resize(call, now, ended); });
      default: return node_->answer(std::move(call), std::move(done));
    }
  }

 private:
  using carry_out = std::function<void(const file_fence& now, const completion& ended)>;

  completion counted(completion done) {
    ++running_;
    return [self = shared_from_this(), done = std::move(done)](const failure& f) {
      --self->running_;
      done(f);
    };
  }

  failure refused(io_kind kind, const file_shape& f, std::error_code code, const std::string& why) const {
    return {code, name() + ": " + described(kind, f) + ": " + why};
  }

  /// Calls `go` when it is its turn, unless its claim to write the file has ended.
  void enter(const shape_ptr& file, io_kind kind, completion done, carry_out go) {
    const std::uint32_t all = gateways_;
    if (all != 0 && gateway_of(file->id, all) != number_)
      return done(refused(
          kind, *file, make_error_code(errc::invalid_request),
          "the file has another gateway, as the store has " + std::to_string(all) + " by now: open the store again"));
    const turn what = kind == io_kind::write ? turn::write : turn::change;
    fences_->enter(file, what, [=, self = shared_from_this()](const failure& unknown, const file_fence& now) {
      if (unknown) return done(unknown);
      const completion ended = [self, file, what, done](const failure& f) {
        self->fences_->leave(file->id, what);
        done(f);
      };
      if (kind != io_kind::remove && !now.claims.holds(file->claim))
        return ended(self->refused(kind, *file, {ESTALE, std::generic_category()}, claim_has_ended));
      try {
        go(now, ended);
      } catch (const std::bad_alloc&) {  // nothing was sent
        ended(self->refused(kind, *file, std::make_error_code(std::errc::not_enough_memory), "there is no memory"));
      }
    });
  }

  void advance(const node_call& call, const file_fence& now, const completion& ended) {
    const file_shape& f = *call.file;
    if (f.generation == 0) return ended(refused(call.kind, f, make_error_code(errc::invalid_request), "generation 0"));
    if (now.generation > f.generation)
      return ended(refused(call.kind, f, make_error_code(errc::conflict),
                           "it is of generation " + std::to_string(now.generation) +
                               " of the file, the metadata know generation " + std::to_string(f.generation - 1)));
    node_->answer(call, [this, file = call.file, now, ended](const failure& why) {
      if (why) return ended(why);
      begin_generation(file, now, ended);
    });
  }

  void resize(const node_call& call, const file_fence& now, const completion& ended) {
    const file_shape& f = *call.file;
    if (f.generation < now.generation && (f.size < call.old_size || f.cut))
      return ended(refused(call.kind, f, make_error_code(errc::conflict),
                           "nothing was changed: the file has been opened for writing since this one looked at it "
                           "(generation " +
                               std::to_string(f.generation) + ", by now " + std::to_string(now.generation) +
                               "), and what it was to lose may be somebody else's bytes"));
    node_->answer(call, [this, file = call.file, now, ended](const failure& why) {
      if (why || file->generation <= now.generation) return ended(why);
      begin_generation(file, now, ended);
    });
  }

  /// Its writer's claim, if it has one, ends others'.
  void begin_generation(const shape_ptr& file, const file_fence& now, const completion& ended) {
    file_fence next = now;
    next.generation = file->generation;
    next.claims.end_before(file->claim);
    if (next == now) return ended({});
    fences_->set(file, next, ended);
  }

  ticker::clock::time_point look() {
    try {
      const node_space s = pool_->space();
      {
        const lock_guard lock(mutex_);
        space_ = s;
      }
      if (const std::string why = who_took_gateway(*pool_, number_); !why.empty()) {
        lost_(why);
        return ticker::clock::time_point::max();
      }
    } catch (const error&) {
      // RADOS is away, which calls say of themselves.
    }
    return ticker::clock::now() + look_every;
  }

  const std::shared_ptr<rados_pool> pool_;
  const std::uint32_t number_;
  const rados_description description_;
  const std::shared_ptr<rados_node> node_;
  const std::shared_ptr<file_fences> fences_;
  const std::function<void(const std::string&)> lost_;
  std::atomic<std::uint32_t> gateways_{0};  // 0: not known yet
  std::atomic<std::uint64_t> running_{0};
  mutable mutex mutex_;
  std::optional<node_space> space_ OOC_GUARDED_BY(mutex_);
  ticker watch_{[this] { return look(); }};  // last: ends first
};

}  // namespace

std::shared_ptr<gateway_node> make_gateway_node(const std::shared_ptr<rados_pool>& pool, std::uint32_t number,
                                                std::function<void(const std::string&)> lost) {
  return std::make_shared<gateway>(pool, number, std::move(lost));
}

}  // namespace ooc::storage
