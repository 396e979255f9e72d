#include "support/faulty_io_service.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/layout/regions.hpp"

namespace ooc::storage {
namespace {

// The first `n` regions that the node with this stripe index has of the request, as a request.
request prefix_of(const request& r, const striping& s, std::uint32_t stripe_index, std::uint64_t n) {
  std::vector<region> regions;
  object_regions(r, s, stripe_index, regions);
  request out;
  for (const region& p : regions) {
    if (n-- == 0) break;
    // A region may span stripes, which are apart in the file.
    for (std::uint64_t at = 0; at < p.length;) {
      const std::uint64_t node = p.node_offset + at;
      const std::uint64_t part = std::min(p.length - at, s.sf - node % s.sf);
      out.add(s.file_offset(stripe_index, node), p.memory_offset + at, part);
      at += part;
    }
  }
  return out;
}

// Where in memory the first region on this node lies.
std::optional<std::uint64_t> first_byte(const request& r, const striping& s, std::uint32_t stripe_index) {
  std::vector<region> regions;
  object_regions(r, s, stripe_index, regions);
  if (regions.empty()) return {};
  return regions.front().memory_offset;
}

}  // namespace

faulty_io_service::faulty_io_service(std::shared_ptr<io_service> inner, std::uint64_t seed)
    : inner_(std::move(inner)), random_(seed) {}

faulty_io_service::~faulty_io_service() {
  release();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (timer_.joinable()) timer_.join();
}

void faulty_io_service::add(const fault_rule& rule) {
  std::lock_guard lock(mutex_);
  rules_.push_back(rule);
}

void faulty_io_service::clear() {
  std::lock_guard lock(mutex_);
  rules_.clear();
}

void faulty_io_service::release() {
  std::lock_guard lock(mutex_);
  for (action& a : held_) delayed_.emplace(clock::now(), std::move(a));
  held_.clear();
  changed_.notify_all();
}

std::uint64_t faulty_io_service::calls(io_kind kind) const {
  std::lock_guard lock(mutex_);
  return calls_[static_cast<unsigned>(kind)];
}

std::uint64_t faulty_io_service::hits(io_kind kind) const {
  std::lock_guard lock(mutex_);
  return hits_[static_cast<unsigned>(kind)];
}

std::uint64_t faulty_io_service::held() const {
  std::lock_guard lock(mutex_);
  return held_.size();
}

// Counts a call; the rule that hits it, if any.
std::optional<fault_rule> faulty_io_service::count(io_kind kind) {
  std::lock_guard lock(mutex_);
  const std::uint64_t number = ++calls_[static_cast<unsigned>(kind)];
  for (auto r = rules_.begin(); r != rules_.end(); ++r) {
    if (r->call != kind || (r->nth != 0 && r->nth != number)) continue;
    if (r->probability < 1 && std::uniform_real_distribution<>()(random_) >= r->probability) continue;
    ++hits_[static_cast<unsigned>(kind)];
    const fault_rule hit = *r;
    if (r->times == 1)
      rules_.erase(r);
    else if (r->times > 1)
      --r->times;
    return hit;
  }
  return {};
}

// Runs `go` now, later, or when released.
void faulty_io_service::dispatch(const std::optional<fault_rule>& rule, action go) {
  if (!rule || (!rule->hold && rule->delay.count() == 0)) return go();
  std::lock_guard lock(mutex_);
  if (!timer_.joinable()) timer_ = std::thread([this] { run_delayed(); });
  if (rule->hold)
    held_.push_back(std::move(go));
  else
    delayed_.emplace(clock::now() + rule->delay, std::move(go));
  changed_.notify_all();
}

void faulty_io_service::run_delayed() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (delayed_.empty()) {
      if (stopping_) return;
      changed_.wait(lock);
    } else if (const auto due = delayed_.begin()->first; clock::now() < due) {
      changed_.wait_until(lock, due);
    } else {
      const action go = std::move(delayed_.extract(delayed_.begin()).mapped());
      lock.unlock();
      go();
      lock.lock();
    }
  }
}

// The caller will be told this instead of success; nothing if the rule has no error.
failure faulty_io_service::injected(io_kind kind, const std::optional<fault_rule>& rule) const {
  if (!rule || !rule->error) return {};
  return {rule->error,
          "node " + inner_->name() + ": " + name_of(kind) + " failed (injected): " + rule->error.message()};
}

void faulty_io_service::answer(node_call call, completion done) {
  const auto rule = count(call.kind);
  // Completions may outlive the decorator: they hold what they need by value.
  const failure fault = injected(call.kind, rule);
  dispatch(rule, [=, this, done = std::move(done)]() mutable {
    if (!rule) return inner_->answer(std::move(call), std::move(done));
    const auto flip = [=](std::byte* memory) {
      if (const auto at = first_byte(*call.wanted, call.file->striping, call.stripe_index))
        memory[*at] ^= std::byte{0x10};
    };
    std::shared_ptr<std::vector<std::byte>> copy;
    if (rule->flip && call.kind == io_kind::write) {
      copy = std::make_shared<std::vector<std::byte>>(call.memory, call.memory + call.wanted->memory_end());
      call.memory = copy->data();
      flip(call.memory);
    }
    completion after = [=, memory = call.memory, reads = call.kind == io_kind::read,
                        done = std::move(done)](const failure& f) {
      static_cast<void>(copy);  // lives as long as this
      if (!f && rule->flip && reads) flip(memory);
      done(f ? f : fault);
    };
    if (!rule->error || rule->error_after) return inner_->answer(std::move(call), std::move(after));
    if (!call.wanted || !rule->regions_before_error) return after({});
    call.wanted = std::make_shared<const request>(
        prefix_of(*call.wanted, call.file->striping, call.stripe_index, *rule->regions_before_error));
    inner_->answer(std::move(call), std::move(after));
  });
}

}  // namespace ooc::storage
