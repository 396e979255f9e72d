#include "support/faulty_io_service.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/layout/regions.hpp"

namespace ooc::storage {
namespace {

constexpr const char* names[io_calls] = {"read", "write",        "creation", "resizing",           "removal",
                                         "sync", "verification", "listing",  "opening for writing"};

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

std::uint64_t faulty_io_service::calls(io_call kind) const {
  std::lock_guard lock(mutex_);
  return calls_[static_cast<unsigned>(kind)];
}

std::uint64_t faulty_io_service::hits(io_call kind) const {
  std::lock_guard lock(mutex_);
  return hits_[static_cast<unsigned>(kind)];
}

std::uint64_t faulty_io_service::held() const {
  std::lock_guard lock(mutex_);
  return held_.size();
}

// Counts a call; the rule that hits it, if any.
std::optional<fault_rule> faulty_io_service::count(io_call kind) {
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

// What the caller will be told instead of success; nothing if the rule has no error.
failure faulty_io_service::injected(io_call kind, const std::optional<fault_rule>& rule) const {
  if (!rule || !rule->error) return {};
  return {rule->error, "node " + inner_->name() + ": " + names[static_cast<unsigned>(kind)] +
                           " failed (injected): " + rule->error.message()};
}

void faulty_io_service::read(shape_ptr file, std::uint32_t stripe_index, request_ptr r, std::byte* memory,
                             completion done) {
  const auto rule = count(io_call::read);
  // Completions may outlive the decorator: they hold what they need by value.
  const failure fault = injected(io_call::read, rule);
  dispatch(rule, [=, this, done = std::move(done)]() mutable {
    if (!rule) return inner_->read(file, stripe_index, r, memory, std::move(done));
    completion after = [=, done = std::move(done)](const failure& f) {
      if (!f && rule->flip)
        if (const auto at = first_byte(*r, file->striping, stripe_index)) memory[*at] ^= std::byte{0x10};
      done(f ? f : fault);
    };
    if (!rule->error || rule->error_after) return inner_->read(file, stripe_index, r, memory, std::move(after));
    if (!rule->regions_before_error) return after({});
    auto part = prefix_of(*r, file->striping, stripe_index, *rule->regions_before_error);
    inner_->read(file, stripe_index, std::make_shared<const request>(std::move(part)), memory, std::move(after));
  });
}

void faulty_io_service::write(shape_ptr file, std::uint32_t stripe_index, request_ptr r, const std::byte* memory,
                              completion done) {
  const auto rule = count(io_call::write);
  // Completions may outlive the decorator: they hold what they need by value.
  const failure fault = injected(io_call::write, rule);
  dispatch(rule, [=, this, done = std::move(done)]() mutable {
    if (!rule) return inner_->write(file, stripe_index, r, memory, std::move(done));
    const std::byte* from = memory;
    std::shared_ptr<std::vector<std::byte>> copy;
    if (rule->flip) {
      copy = std::make_shared<std::vector<std::byte>>(memory, memory + r->memory_end());
      if (const auto at = first_byte(*r, file->striping, stripe_index)) (*copy)[*at] ^= std::byte{0x10};
      from = copy->data();
    }
    completion after = [=, done = std::move(done)](const failure& f) {
      static_cast<void>(copy);  // lives as long as this
      done(f ? f : fault);
    };
    if (!rule->error || rule->error_after) return inner_->write(file, stripe_index, r, from, std::move(after));
    if (!rule->regions_before_error) return after({});
    auto part = prefix_of(*r, file->striping, stripe_index, *rule->regions_before_error);
    inner_->write(file, stripe_index, std::make_shared<const request>(std::move(part)), from, std::move(after));
  });
}

void faulty_io_service::simple(io_call kind, completion done, std::function<void(completion)> forward) {
  const auto rule = count(kind);
  const failure fault = injected(kind, rule);
  dispatch(rule, [=, done = std::move(done), forward = std::move(forward)]() mutable {
    if (!fault) return forward(std::move(done));
    if (!rule->error_after) return done(fault);
    forward([=, done = std::move(done)](const failure& f) { done(f ? f : fault); });
  });
}

void faulty_io_service::create(shape_ptr file, std::uint32_t stripe_index, completion done) {
  simple(io_call::create, std::move(done),
         [=, this](completion d) { inner_->create(file, stripe_index, std::move(d)); });
}

void faulty_io_service::resize(shape_ptr file, std::uint32_t stripe_index, std::uint64_t old_size, completion done) {
  simple(io_call::resize, std::move(done),
         [=, this](completion d) { inner_->resize(file, stripe_index, old_size, std::move(d)); });
}

void faulty_io_service::remove(shape_ptr file, completion done) {
  simple(io_call::remove, std::move(done), [=, this](completion d) { inner_->remove(file, std::move(d)); });
}

void faulty_io_service::advance(shape_ptr file, std::uint32_t stripe_index, completion done) {
  simple(io_call::advance, std::move(done),
         [=, this](completion d) { inner_->advance(file, stripe_index, std::move(d)); });
}

void faulty_io_service::sync(shape_ptr file, std::uint32_t stripe_index, completion done) {
  simple(io_call::sync, std::move(done), [=, this](completion d) { inner_->sync(file, stripe_index, std::move(d)); });
}

void faulty_io_service::prepare(shape_ptr file, std::uint32_t stripe_index, completion done) {
  simple(io_call::prepare, std::move(done),
         [=, this](completion d) { inner_->prepare(file, stripe_index, std::move(d)); });
}

void faulty_io_service::roll_back(shape_ptr file, std::uint32_t stripe_index, completion done) {
  simple(io_call::roll_back, std::move(done),
         [=, this](completion d) { inner_->roll_back(file, stripe_index, std::move(d)); });
}

void faulty_io_service::verify(shape_ptr file, std::uint32_t stripe_index,
                               std::function<void(const failure&, verify_report)> done) {
  auto report = std::make_shared<verify_report>();
  simple(
      io_call::verify, [=](const failure& f) { done(f, f ? verify_report{} : *report); },
      [=, this](completion d) {
        inner_->verify(file, stripe_index, [=](const failure& f, verify_report v) {
          *report = std::move(v);
          d(f);
        });
      });
}

void faulty_io_service::list(std::function<void(const failure&, std::vector<file_id>)> done) {
  auto ids = std::make_shared<std::vector<file_id>>();
  simple(
      io_call::list, [=](const failure& f) { done(f, f ? std::vector<file_id>{} : *ids); },
      [=, this](completion d) {
        inner_->list([=](const failure& f, std::vector<file_id> v) {
          *ids = std::move(v);
          d(f);
        });
      });
}

}  // namespace ooc::storage
