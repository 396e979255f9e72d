#include "storage/client/metadata_client.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "storage/wire/metadata_messages.hpp"

namespace ooc::storage {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

constexpr auto quick = 2s;  // for calls that nobody should wait for long
// With a server that is gone: how long, and how often, it is asked all the same.
constexpr std::chrono::milliseconds probe_time = 500ms, probe_pause = 1s;

/// Of what connecting needs of others: where that fails, another attempt to connect may do, but not for who has been
/// shut out.
template <class Call>
auto for_connection(const Call& call) {
  try {
    return call();
  } catch (const io_error& e) {
    if (e.code() == std::error_code(ESHUTDOWN, std::generic_category())) throw;
    throw wire::connection_error(e.code(), e.what());
  }
}

/// The server, of this epoch, has answered: what is durable now, and what has been changed and is not.
void note(unsynced_files& changes, const wire::any_call& c, const metadata_answer& a, std::uint64_t asked,
          std::uint64_t epoch) {
  constexpr file_id names = 0;
  const entry* const e = std::get_if<entry>(&a);
  const file_id answered = e == nullptr ? names : e->id;  // 0 where a move has replaced nothing
  const auto durable = [&] {                              // with all that was changed before
    const bool* const done = std::get_if<bool>(&a);
    if (done == nullptr || *done) changes.synced_all(asked);
  };
  std::visit(overloaded{
                 [&](const calls::sync&) { durable(); },
                 [&](const calls::set_generation&) { durable(); },
                 [&](const calls::set_in_progress&) { durable(); },
                 [&](const calls::take_over&) { durable(); },
                 [&](const calls::decide&) { durable(); },
                 // What is lost of these is done again when the store is opened next.
                 [](const calls::abandon&) {},
                 [&](const calls::forget& q) { changes.removed(q.id); },
                 [&](const calls::move&) {
                   changes.changed(names, epoch);
                   if (answered != names) changes.changed(answered, epoch);  // what was replaced
                 },
                 [&]<class Call>(const Call& q) {
                   if constexpr (!calls::changes<Call>)
                     return;
                   else if constexpr (requires { q.id; })
                     changes.changed(q.id, epoch);
                   else
                     changes.changed(answered, epoch);
                 },
             },
             c);
}

}  // namespace

/// A question, which is asked until it is answered or the time is up.
struct metadata_client::question {
  wire::frame_kind kind;
  std::string text;
  std::chrono::milliseconds within;
  wire::sent_call* call = nullptr;  // empty: the body is empty
  // Of the attempt that was answered: when it was made (next_moment()), and the server's epoch.
  std::uint64_t asked = 0, epoch = 0;

  /// For messages: a call has to be encoded for it.
  std::string doing() const { return call == nullptr ? text : wire::operation_name(wire::operation_of(call->what)); }
};

metadata_client::metadata_client(remote_metadata_options options)
    : options_(std::move(options)),
      connection_(options_.address),
      outage_(options_.deadline),
      store_uuid_(options_.store_uuid) {}

void metadata_client::connect() {
  question q{wire::frame_kind::ping, "connecting", options_.deadline};
  exchange(q);
}

wire::call_reply metadata_client::call(const wire::any_call& c, std::optional<std::chrono::milliseconds> within) {
  wire::sent_call sent{c};
  question q{wire::frame_kind::metadata, {}, within.value_or(options_.deadline), &sent};
  wire::call_reply reply = wire::decode_reply(c, exchange(q));
  note(changes_, c, reply.answer, q.asked, q.epoch);
  if (reply.grace.count() > 0) contact_.every(reply.grace / 3);
  return reply;
}

std::string metadata_client::ask(wire::frame_kind kind, const std::string& doing, std::chrono::milliseconds within) {
  question q{kind, doing, within};
  return exchange(q);
}

/// The server has answered, if only with a refusal.
void metadata_client::heard() {
  if (outage_.heard(clock::now(), false)) notice_of_many(name() + " answers again");
}

std::string metadata_client::exchange(question& q) {
  auto deadline = clock::now() + q.within;
  ++waiting_;
  const std::shared_ptr<void> waits(nullptr, [this](void*) { --waiting_; });
  const auto start = [&] { return name() + ": " + q.doing() + ": "; };
  if (!mutex_.try_lock_until(deadline))
    throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                            start() + "other calls of this program have kept it waiting for " + seconds_text(q.within) +
                                "; see whether the server answers (`ooc ping`)");
  const lock_guard lock(mutex_, std::adopt_lock);
  // A caller that comes within an outage waits for its end only.
  const bool gone = outage_.judge(clock::now());
  if (gone && clock::now() - last_try_ < probe_pause)
    throw io_error::in_full({ETIMEDOUT, std::generic_category()},
                            start() + "fails at once: nothing has come from there for " +
                                seconds_text(outage_.lasts(clock::now())) + ", longer than the deadline of " +
                                seconds_text(outage_.deadline()) +
                                "; start the server, or check its address and the network");
  deadline = std::min(deadline, gone ? clock::now() + probe_time : outage_.end());
  const bool changing = q.call != nullptr && wire::changes(q.call->what);
  if (changing) q.call->sequence = ++sequence_;
  bool sent = false;
  const std::shared_ptr<void> told(nullptr, [this](void*) OOC_REQUIRES(mutex_) {
    connection_.tell_at(clock::time_point::max(), {});
    if (waiting_ == 1) outage_.nobody_waits();
  });
  auto began = clock::now();
  // The program was stopped, and has not had the time that it has waited for.
  const auto begin_anew = [&]() OOC_REQUIRES(mutex_) {
    const auto now = clock::now();
    outage_.stopped_for(now - began, now);
    deadline = now + (gone ? probe_time : q.within);
  };
  for (std::chrono::milliseconds pause = 20ms;; pause = std::min(2 * pause, 1000ms)) {
    // A part of the time for each attempt, so that a connection that has gone dead is noticed.
    began = clock::now();
    const auto attempt = std::min(deadline, began + std::max(q.within / 3, 1000ms));
    try {
      if (!gone && q.within > notice_after)
        connection_.tell_at(
            std::min(outage_.notice_at(), outage_.begun() ? clock::time_point::max() : began + notice_after),
            [&]() OOC_REQUIRES(mutex_) {
              outage_.missed(began);
              outage_.say(name() + " to answer (" + q.doing() + ")");
            });
      if (!connection_.open())
        connect_once(attempt);
      else if (!restored_)
        restore_leases(attempt);
      tell_dropped(attempt);
      if (q.call != nullptr) q.call->again = sent;
      const std::string body = q.call != nullptr ? wire::encode(*q.call) : std::string();
      sent = true;
      q.asked = next_moment();
      const auto answer = connection_.ask(q.kind, body, attempt);
      heard();
      if (answer.header.has(wire::frame_header::failed)) wire::throw_failure(answer.body);
      q.epoch = connection_.server().epoch;
      return std::string(answer.body);
    } catch (const wire::connection_refused& e) {
      heard();
      throw usage_error(e.code(), start() + e.what());
    } catch (const wire::connection_error& e) {
      last_try_ = clock::now();
      outage_.missed(began);
      if (connection_.stopped()) begin_anew();
      deadline = std::min(deadline, gone ? deadline : outage_.end());
      if (clock::now() + pause < deadline) {
        if (q.within > notice_after && clock::now() + pause >= outage_.notice_at())
          outage_.say(name() + " to answer (" + q.doing() + "; " + e.what() + ")");
        const auto end_of_pause = clock::now() + pause;
        std::this_thread::sleep_until(end_of_pause);
        if (clock::now() - end_of_pause > outage::was_stopped) begin_anew();
        continue;
      }
      outage_.judge(clock::now() + pause);
      throw io_error::in_full(
          {ETIMEDOUT, std::generic_category()},
          start() + "no answer within " + seconds_text(gone ? outage_.deadline() : q.within) + " (" + e.what() +
              "); start the server, or check its address and the network" +
              (sent && changing ? "; whether the change was made is not known: look before you repeat it" : ""));
    }
  }
}

void metadata_client::connect_once(deadline_point deadline) {
  wire::hello_info me;
  me.client = options_.client.id;
  me.connection = ++connections_;
  me.role = wire::peer_role::client;
  me.wanted = wire::server_role::metadata;
  me.who = options_.client.who;
  me.store_uuid = store_uuid_;
  me.name = options_.client.name;
  me.frames = options_.client.frames;
  if (options_.lookup) connection_.set_address(for_connection(options_.lookup));
  connection_.connect(me, options_.client.key, deadline);
  changes_.meet(connection_.server().epoch);
  // Not earlier: where the server has taken this client for lost, it may still be about to forget it.
  if (options_.introduce) try {
      for_connection(options_.introduce);
    } catch (...) {
      connection_.close();
      throw;
    }
  store_uuid_ = connection_.server().store_uuid;
  restored_ = false;
  restore_leases(deadline);
}

// Nobody waits for this, so a server that does not answer is not missed yet (outage.hpp).
bool metadata_client::keep_in_touch() noexcept {
  try {
    const auto end = clock::now() + quick;
    if (!mutex_.try_lock_until(clock::now())) return all_told();  // somebody is asking
    const lock_guard lock(mutex_, std::adopt_lock);
    try {
      if (connection_.open()) {
        if (!restored_) restore_leases(end);
        tell_dropped(end);
        connection_.ask(wire::frame_kind::ping, {}, end);
        heard();
        return restored_ && all_told();
      }
    } catch (const wire::connection_error&) {
      // It has been started again, or the connection was cut.
    }
    connect_once(end);
    tell_dropped(end);
    heard();
    return restored_ && all_told();
  } catch (const std::exception& e) {
    spdlog::debug("{}: keeping in touch: {}", name(), e.what());
  }
  return all_told();
}

bool metadata_client::all_told() {
  const lock_guard lock(leases_mutex_);
  return dropped_.empty();
}

wire::call_reply metadata_client::ask_now(const wire::sent_call& c, deadline_point deadline) {
  const auto answer = connection_.ask(wire::frame_kind::metadata, wire::encode(c), deadline);
  if (answer.header.has(wire::frame_header::failed)) wire::throw_failure(answer.body);
  return wire::decode_reply(c.what, answer.body);
}

// Leases.

// Where the server cannot give them now, with a full disk for instance, it is asked again soon.
void metadata_client::restore_leases(deadline_point deadline) {
  std::map<std::uint64_t, wire::take_lease> held;
  {
    const lock_guard lock(leases_mutex_);
    held = leases_;
  }
  for (const auto& [number, l] : held) {
    bool granted = false;
    try {
      granted = ask_now({.what = l, .again = true}, deadline).lease.granted;
    } catch (const usage_error& gone) {
      // The file has been removed: there is nothing left to guard.
    } catch (const io_error& failed) {
      spdlog::debug("{}: restoring a lock: {}", name(), failed.what());
      return contact_.soon();
    }
    if (granted) continue;
    notice(name() + ": the lock of file number " + std::to_string(l.file) +
           " was lost while the server could not be reached: whoever has opened the file for writing since then "
           "keeps this process from storing anything there");
    const lock_guard lock(leases_mutex_);
    if (leases_.erase(number) != 0 && l.kind != wire::lease_kind::size) lost_claims_[number] = l.file;
  }
  restored_ = true;
}

// An earlier claim of the same file may have been lost, and its holder may not have looked yet: that is his affair.
bool metadata_client::has_lost_claim(file_id file) {
  const lock_guard lock(leases_mutex_);
  std::uint64_t lost = 0, held = 0;
  for (const auto& [number, of] : lost_claims_)
    if (of == file) lost = number;
  if (lost == 0) return false;
  for (const auto& [number, l] : leases_)
    if (l.file == file && l.kind != wire::lease_kind::size) held = number;
  return lost > held;
}

std::shared_ptr<void> metadata_client::take(file_id file, wire::lease_kind kind, claim_holder* in_the_way) {
  std::uint64_t number = 0;
  if (const auto got = ask_for(file, kind, number).lease; !got.granted) {
    if (in_the_way != nullptr) *in_the_way = got.holder;
    return nullptr;
  }
  return {this, [self = shared_from_this(), number](void*) { self->drop({number}); }};
}

// The threads of this program take their turns here: the server knows clients, not their threads, and one of them may
// have lost the lease without knowing it.
size_lock_ptr metadata_client::take_size(file_id file) {
  {
    const lock_guard lock(leases_mutex_);
    if (!sized_.insert(file).second) return nullptr;
  }
  const auto end_turn = [self = shared_from_this(), file] {
    const lock_guard lock(self->leases_mutex_);
    self->sized_.erase(file);
  };
  auto guard = std::make_unique<size_lock>();
  std::uint64_t number = 0;
  try {
    const auto got = ask_for(file, wire::lease_kind::size, number).lease;
    guard->owes_fence = got.owes_fence;
    if (!got.granted) guard.reset();
  } catch (...) {
    end_turn();
    throw;
  }
  if (guard)
    return {guard.release(), [end_turn, self = shared_from_this(), number](size_lock* l) {
              self->drop({number, l->unsettled});
              end_turn();
              delete l;
            }};
  end_turn();
  return nullptr;
}

// The number is that of the lease, where it is granted.
wire::call_reply metadata_client::ask_for(file_id file, wire::lease_kind kind, std::uint64_t& number) {
  {
    const lock_guard lock(leases_mutex_);
    number = ++last_lease_;
  }
  const wire::take_lease wanted{number, file, kind};
  try {
    wire::call_reply a = call(wanted);
    if (a.lease.granted) {
      const lock_guard lock(leases_mutex_);
      leases_[number] = wanted;
    }
    return a;
  } catch (...) {
    // The server may have granted what it could not tell of.
    {
      const lock_guard lock(leases_mutex_);
      dropped_.push_back({number});
    }
    contact_.soon();
    throw;
  }
}

void metadata_client::drop(const wire::drop_lease& l) noexcept {
  try {
    {
      const lock_guard lock(leases_mutex_);
      leases_.erase(l.number);
      lost_claims_.erase(l.number);
      dropped_.push_back(l);
    }
    if (mutex_.try_lock_until(clock::now() + quick)) {
      const lock_guard lock(mutex_, std::adopt_lock);
      if (connection_.open()) tell_dropped(clock::now() + quick);
    }
  } catch (const std::exception& e) {
    spdlog::debug("{}: dropping a lock: {}", name(), e.what());
  }
  // There may be no other call for long, and others wait for the lock.
  if (!all_told()) contact_.soon();
}

void metadata_client::tell_dropped(deadline_point deadline) {
  for (;;) {
    wire::drop_lease next;
    {
      const lock_guard lock(leases_mutex_);
      if (dropped_.empty()) return;
      next = dropped_.back();
    }
    try {
      ask_now({.what = next}, deadline);
    } catch (const io_error& failed) {
      // Not the fault of who has something else to ask now.
      spdlog::debug("{}: dropping a lock: {}", name(), failed.what());
      return;
    }
    const lock_guard lock(leases_mutex_);
    std::erase_if(dropped_, [&](const wire::drop_lease& l) { return l.number == next.number; });
  }
}

void metadata_client::goodbye() noexcept {
  contact_.stop();
  try {
    if (!mutex_.try_lock_until(clock::now() + quick)) return;
    const lock_guard lock(mutex_, std::adopt_lock);
    if (!connection_.open()) return;
    ask_now({.what = wire::goodbye{}}, clock::now() + quick);
    connection_.close();
  } catch (const std::exception& e) {
    spdlog::debug("{}: saying goodbye: {}", name(), e.what());
  }
}

}  // namespace ooc::storage
