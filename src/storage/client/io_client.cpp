#include "storage/client/io_client.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cassert>
#include <cerrno>
#include <exception>
#include <utility>

#include "storage/base/invariants.hpp"

namespace ooc::storage {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr unsigned max_damages = 4;
// A server says every second what it is busy with.
constexpr auto shortest_silence = 3s, longest_silence = 10s;
// Between two lookups of the server, where it has been somewhere and where it has never been.
constexpr std::chrono::milliseconds lookup_pause = 1s, first_lookup_pause = 50ms;
// Between two looks at deadlines and at calls that wait.
constexpr std::chrono::milliseconds shortest_tick = 50ms, longest_tick = 500ms;

std::uint64_t weight(const remote_call& c) {
  if (!c.what.wanted) return 4096;
  return 4096 + (c.what.range.count ? c.what.range.count : c.what.wanted->bytes());
}

/// The one for the next call; nullptr where none is up.
template <class Links>
auto best_of(Links& links) -> decltype(links.data()) {
  decltype(links.data()) best = nullptr;
  for (auto& l : links)
    if (l.number != 0 && (best == nullptr || l.better_than(*best))) best = &l;
  return best;
}

/// The call goes by this one.
void load(io_link& l, remote_call& c) {
  c.connection = l.number;
  l.outstanding += weight(c);
}

/// It goes by none any more.
void unload(std::vector<io_link>& links, remote_call& c) {
  for (io_link& l : links)
    if (l.number == c.connection && l.number != 0) l.outstanding -= weight(c);
  c.connection = 0;
}

/// The call of which nothing has been heard for the longest time; nullptr: all are answered.
template <class Calls>
const remote_call* longest_waiting(const Calls& calls) {
  const remote_call* longest = nullptr;
  for (const auto& [id, c] : calls)
    if (!c->answered && (longest == nullptr || c->alive < longest->alive)) longest = c.get();
  return longest;
}

bool is_unix(std::string_view address) { return address.starts_with("unix:"); }

failure failure_of(const remote_call& c, std::string_view body) {
  try {
    return wire::decode_failure(body);
  } catch (const error& e) {
    return unreadable(describe(c), e);
  }
}

/// A call whose bytes were damaged on the way is sent again, a few times.
bool may_be_damaged_again(remote_call& c) { return ++c.damages < max_damages; }

failure damage_of(const remote_call& c) {
  return {errc::corrupt, describe(c) + ": the bytes were damaged between its disk and here, each of " +
                             std::to_string(max_damages) + " times; look at the network and at `ooc verify`"};
}

/// Why a call is given up.  `refusal`: of the server by the metadata server, where there is one.
failure given_up(const std::string& server, const remote_call& c, const outage& away, const std::string& last_trouble,
                 const failure& refusal) {
  if (refusal) return {refusal.code, server + ": no answer to " + describe(c) + ": " + refusal.what};
  std::string what = server + ": no answer to " + describe(c) + " within " + seconds_text(away.deadline());
  if (const auto now = remote_call::clock::now(); away.gone() && now - c.alive < away.deadline())
    what = server + ": " + describe(c) + " is given up: nothing has come from there for " +
           seconds_text(away.lasts(now)) + ", longer than the deadline of " + seconds_text(away.deadline());
  if (!last_trouble.empty()) what += " (" + last_trouble + ")";
  return {std::make_error_code(std::errc::timed_out),
          what + "; is ooc-iod running there? `ooc ping` shows which servers answer"};
}

/// Whether the call relies on what the server has acknowledged of its file before, and may be asked for it by another
/// opening of the file only.
bool uses_lost(const remote_call& c, const unsynced_files& files) {
  const node_call& n = c.what;
  if (!n.file || (n.kind != io_kind::read && n.kind != io_kind::write && n.kind != io_kind::sync)) return false;
  return files.lost_since(n.file->id, n.file->opened);
}

/// The server, of this epoch, has done what was asked.  What was made after a commit it keeps account of itself.
void note(unsynced_files& files, const remote_call& c, std::uint64_t epoch) {
  const node_call& n = c.what;
  if (!n.file) return;
  switch (n.kind) {
    case io_kind::write:
    case io_kind::resize: return n.file->commits ? void() : files.changed(n.file->id, epoch);
    case io_kind::clone: return files.changed(n.into->id, epoch);
    case io_kind::sync: return files.synced(n.file->id, c.asked);
    case io_kind::remove: return files.removed(n.file->id);
    default: return;
  }
}

/// Runs it, which was counted before, for `self`.
void spawn(asio::awaitable<void> what, asio::io_context& context, std::shared_ptr<io_client> self, in_flight& running) {
  asio::co_spawn(context, std::move(what), [self, &running](const std::exception_ptr&) { running.end(); });
}

}  // namespace

io_client::io_client(remote_node_options o, std::shared_ptr<unsynced_files> files)
    : options_(std::move(o)),
      files_(std::move(files)),
      threads_(options_.threads ? options_.threads : std::make_shared<io_threads>()),
      context_(threads_->for_a_server()),
      ticks_(context_),
      outage_(options_.deadline) {
  go_to(options_.addresses);
}

void io_client::start() {
  running_.begin();
  asio::post(context_, [self = shared_from_this()] { spawn(self->watch(), self->context_, self, self->running_); });
}

void io_client::stop() {
  const bool own = threads_->is_one_of_them();
  {
    unique_lock held(mutex_);
    stopping_ = true;
    if (!own) idle_.wait(held, [&]() OOC_REQUIRES(mutex_) { return calls_.empty(); });
  }
  look_soon();
  if (own) return;
  running_.wait_below(1);
  // A handler may still be about to let go of the client, which must not keep the metadata service any longer.
  options_.lookup = {};
}

#ifndef NDEBUG
void io_client::check_invariants() const {
  for (const auto& [id, c] : calls_) assert(c->id == id);
  for (const call_ptr& c : waiting_) assert(calls_.count(c->id) == 1 && c->connection == 0 && !c->answered);
  for (const call_ptr& c : ended_) assert(calls_.count(c->id) == 1 && c->answered && c->holds == 0);
  for (const io_link& l : links_) {
    std::uint64_t outstanding = 0;
    for (const auto& [id, c] : calls_)
      if (l.number != 0 && c->connection == l.number) outstanding += weight(*c);
    assert(outstanding == l.outstanding);
  }
}
#endif

void io_client::submit(const call_ptr& c, std::vector<region> regions) {
  std::shared_ptr<wire::frame_sender> sender;
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    c->id = next_id_++;
    c->asked = next_moment();
    c->alive = clock::now();
    if (std::exchange(asleep_, false)) look_soon();
    calls_.emplace(c->id, c);
    if (outage_.gone()) {
      c->answered = true;
      c->outcome = given_up(name_, *c, outage_, last_trouble_, refusal_);
      ended_.push_back(c);
      // Not here: who submits need not expect its completion before this returns.
      asio::post(context_, [self = shared_from_this()] { self->finish_ended(); });
      return;
    }
    outage_.missed(c->alive);
    sender = place(c, regions);
  }
  if (sender) send(*sender, c, std::move(regions));
}

std::string io_client::name() const {
  const lock_guard held(mutex_);
  return name_;
}

std::size_t io_client::ways() const {
  const lock_guard held(mutex_);
  std::size_t by_network = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].shortest) return 1;
    by_network += !is_unix(connections_[i]->address());
  }
  return std::max<std::size_t>(by_network, 1);
}

// Reports of the channels.

void io_client::connection_up(std::size_t channel, std::uint32_t number, std::shared_ptr<wire::frame_sender> sender,
                              bool near, std::uint64_t epoch) {
  if (near) near_ = true;
  files_->meet(epoch);
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    links_[channel] = {number, std::move(sender), 0, clock::now(), is_unix(connections_[channel]->address()), epoch};
    last_trouble_.clear();
    heard(clock::now());
  }
  fence_lost();
  place_waiting();
}

void io_client::connection_down(std::size_t channel, const std::string& why) {
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    last_trouble_ = connections_[channel]->address() + ": " + why;
    const io_link gone = std::exchange(links_[channel], {});
    for (auto& [id, c] : calls_) {
      if (gone.number == 0 || c->connection != gone.number || c->answered) continue;
      c->connection = 0;
      if (c->repeat) {
        lost_.add(c, gone.number);
      } else {
        c->answered = true;
        c->outcome = {std::make_error_code(std::errc::connection_reset), why};
        ended_.push_back(c);
      }
    }
  }
  for (const auto& other : connections_) other->wake();
  fence_lost();
  finish_ended();
  look_soon();
}

bool io_client::wants_connection() const {
  const lock_guard held(mutex_);
  return !calls_.empty() || outage_.gone();
}

asio::awaitable<void> io_client::frame_came(std::size_t channel, wire::frame_reader& reader, const frame_header& h) {
  call_ptr c;
  {
    const lock_guard held(mutex_);
    links_[channel].alive = clock::now();
    heard(links_[channel].alive);
    const auto found = calls_.find(h.id);
    if (found != calls_.end() && found->second->connection == links_[channel].number) c = found->second;
    if (c) c->alive = clock::now();
  }
  const bool answer_to_none = !c || c->answered;
  // The server may have called a request busy while the answer to it was on its way.  Id 0: it is
  // busy with what it has, and has not read on.
  if (h.kind == frame_kind::reply && answer_to_none && h.flags == 0 && h.body_bytes == 0 && h.payload_bytes == 0) {
    if (h.id != 0) co_return;
    const lock_guard held(mutex_);
    for (const auto& [id, any] : calls_)
      if (any->connection == links_[channel].number) any->alive = clock::now();
    co_return;
  }
  if (h.kind != frame_kind::reply || answer_to_none)
    throw wire::connection_error(std::make_error_code(std::errc::protocol_error), "an answer to no request");
  if (h.has(frame_header::failed)) {
    co_await reader.skip(h.payload_bytes);
    failure f = failure_of(*c, reader.body());
    // A gateway that another has replaced, and that is about to end: the other one answers.
    if (f.code == std::error_code(ESHUTDOWN, std::generic_category())) throw wire::connection_error(f.code, f.what);
    if (f.code == std::errc::bad_message && c->kind == frame_kind::write && may_be_damaged_again(*c))
      send_again(c);
    else
      answered(c, std::move(f), {});
    co_return;
  }
  if (h.payload_bytes != 0) co_await receive_part(*c, reader, h);
  if (!h.has(frame_header::last)) co_return;
  if (c->parts && !c->parts->at_end())
    throw wire::connection_error(std::make_error_code(std::errc::protocol_error), "a read that ends too early");
  // Where it brought bytes that are not what was stored: once more, checked by the server too.
  if (!c->damaged)
    answered(c, {}, std::string(reader.body()));
  else if (may_be_damaged_again(*c))
    send_again(c);
  else
    answered(c, damage_of(*c), {});
}

void io_client::heard(clock::time_point now) {
  refusal_ = {};
  if (outage_.heard(now, !calls_.empty())) notice_of_many(name_ + " answers again");
}

// Sending.

/// Gives the call to a connection, whose sender send() must then be called with, or lets it wait for one, or for a
/// fence; or ends it, as what it is about has been lost.
std::shared_ptr<wire::frame_sender> io_client::place(const call_ptr& c, std::vector<region>& regions) {
  if (uses_lost(*c, *files_)) {
    c->answered = true;
    c->outcome = lost_with_power(name_, describe(*c));
    ended_.push_back(c);
    asio::post(context_, [self = shared_from_this()] { self->finish_ended(); });
    return nullptr;
  }
  const auto wake = [self = shared_from_this()] {
    for (const auto& channel : self->connections_) channel->wake();
  };
  const bool must_wait = lost_.owes_fence() && c->kind != frame_kind::fence;
  io_link* const l = must_wait ? nullptr : best_of(links_);
  if (l == nullptr) {
    // Those after the first find the looks frequent already.
    if (waiting_.empty()) look_soon();
    waiting_.push_back(c);
    asio::post(context_, wake);
    return nullptr;
  }
  const auto is_down = [](const io_link& other) { return other.number == 0; };
  if (!l->shortest && std::any_of(links_.begin(), links_.end(), is_down)) asio::post(context_, wake);
  load(*l, *c);
  if (c->kind == frame_kind::read) {
    c->parts.emplace(std::move(regions));
    c->damaged = false;
    regions.clear();
  }
  // A write is held from here on, so that an early loss of the connection cannot end it.
  if (c->kind == frame_kind::write) c->holds = 1;
  return l->sender;
}

void io_client::send(wire::frame_sender& sender, const call_ptr& c, std::vector<region> regions) {
  call_frames frames =
      frames_of(*c, c->id, std::move(regions), [self = shared_from_this(), c](bool) { self->release(c); });
  if (c->kind == frame_kind::write) {
    const lock_guard held(mutex_);
    c->holds += frames.holds;
  }
  // Together: a server takes one write at a time whose parts are still to come, whatever the memory
  // that it has for requests.
  sender.send(frames.messages);
  if (c->kind == frame_kind::write) release(c);
}

/// Those whose old sender has not let go yet stay until the next tick.
void io_client::place_waiting() {
  std::vector<call_ptr> now;
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    if (best_of(links_) == nullptr) return;
    const bool owes_fence = lost_.owes_fence();
    std::erase_if(waiting_, [&](const call_ptr& c) {
      if (c->holds != 0 || (owes_fence && c->kind != frame_kind::fence)) return false;
      now.push_back(c);
      return true;
    });
  }
  for (const call_ptr& c : now) {
    std::vector<region> regions = regions_of(*c);
    std::shared_ptr<wire::frame_sender> sender;
    {
      const lock_guard held(mutex_);
      const invariants_hold at_end(*this);
      // Another thread may have given it up since: its memory is the caller's again.
      if (c->answered) continue;
      sender = place(c, regions);
    }
    if (sender) send(*sender, c, std::move(regions));
  }
}

void io_client::release(const call_ptr& c) {
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    if (--c->holds != 0) return;
    if (!c->answered) return;
    ended_.push_back(c);
  }
  finish_ended();
}

// Answers.

/// The server is done with the call under its present id; it gets another one.
void io_client::send_again(const call_ptr& c) {
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    unload(links_, *c);
    calls_.erase(c->id);
    c->id = next_id_++;
    calls_.emplace(c->id, c);
    waiting_.push_back(c);
  }
  place_waiting();
}

void io_client::answered(const call_ptr& c, failure f, std::string reply) {
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    if (f)
      f.what = name_ + ": " + f.what;
    else
      for (const io_link& l : links_)
        if (l.number != 0 && l.number == c->connection) note(*files_, *c, l.epoch);
    c->outcome = std::move(f);
    c->reply = std::move(reply);
    c->answered = true;
    unload(links_, *c);
    if (c->holds == 0) ended_.push_back(c);
  }
  finish_ended();
}

void io_client::finish_ended() {
  std::vector<call_ptr> ended;
  bool last = false;
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    ended = std::exchange(ended_, {});
    for (const call_ptr& c : ended) calls_.erase(c->id);
    if (calls_.empty()) {
      outage_.nobody_waits();
      idle_.notify_all();
    }
    last = stopping_ && calls_.empty() && !ended.empty();
  }
  for (const call_ptr& c : ended) c->finish(c->outcome, std::move(c->reply));
  if (last) look_soon();
}

// Fences.

/// Tells the server, by any connection, that it is to do nothing more for the lost ones.
void io_client::fence_lost() {
  fenced_calls::connections numbers;
  {
    const lock_guard held(mutex_);
    // Where nobody waits for anything, what was given up is fenced when somebody does.
    if (best_of(links_) != nullptr && !calls_.empty() && !outage_.gone()) numbers = lost_.begin_fence();
  }
  if (numbers.empty()) return;
  const auto fence = std::make_shared<remote_call>();
  fence->kind = frame_kind::fence;
  fence->repeat = false;
  fence->body = wire::encode_fence(numbers);
  fence->finish = [this, numbers](const failure& f, const std::string&) { fenced(numbers, f); };
  submit(fence, {});
}

void io_client::fenced(const fenced_calls::connections& numbers, const failure& f) {
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    for (call_ptr& c : lost_.end_fence(numbers, !f)) waiting_.push_back(std::move(c));
  }
  // Others may have been lost meanwhile, or the fence itself.
  fence_lost();
  place_waiting();
}

// Where the server is.

/// A connection for each address; those there are go to the new ones.
void io_client::go_to(const std::vector<std::string>& addresses) {
  const lock_guard held(mutex_);
  name_ = "node " + std::to_string(options_.index);
  if (addresses.empty()) return;
  name_ += " (" + addresses.front() + ")";
  near_ = false;
  for (std::size_t i = 0; i < connections_.size(); ++i) connections_[i]->move_to(addresses[i % addresses.size()]);
  for (std::size_t i = connections_.size(); i < addresses.size(); ++i) {
    connections_.push_back(std::make_unique<io_connection>(context_, *this, i, addresses[i]));
    links_.emplace_back();
  }
}

/// Asks where the server is while calls wait and it is not where it was.
void io_client::look_for_server(clock::time_point now) {
  if (!options_.lookup || asking_) return;
  const auto pause = connections_.empty() ? first_lookup_pause : lookup_pause;
  bool needed = false;
  {
    const lock_guard held(mutex_);
    needed = (!calls_.empty() || outage_.gone()) && best_of(links_) == nullptr;
  }
  if (!needed) {
    next_lookup_ = clock::time_point::max();
    return;
  }
  if (next_lookup_ == clock::time_point::max()) next_lookup_ = connections_.empty() ? now : now + pause;
  if (now < next_lookup_) return;
  asking_ = true;
  running_.begin();
  threads_->ask([self = shared_from_this()] {
    const auto asked = clock::now();  // not what it waited for the questions of other servers
    const auto over = [&] {
      const lock_guard held(self->mutex_);
      return self->stopping_ && self->calls_.empty();
    };
    std::vector<std::string> found;
    std::string trouble = "its I/O server is not registered: see its log for why";
    try {
      if (!over()) found = self->options_.lookup();
    } catch (const server_refused& e) {
      trouble = e.what();
      const lock_guard held(self->mutex_);
      self->refusal_ = {e.code(), e.what()};
      self->outage_.give_up();
    } catch (const std::exception& e) {
      trouble = e.what();
    }
    asio::post(self->context_, [self, asked, found, trouble] { self->server_found(asked, found, trouble); });
  });
}

void io_client::server_found(clock::time_point asked, const std::vector<std::string>& addresses,
                             const std::string& trouble) {
  asking_ = false;
  if (!addresses.empty()) {
    go_to(addresses);
  } else if (connections_.empty()) {
    const lock_guard held(mutex_);
    last_trouble_ = trouble;
  }
  // Others are to be asked for as well, so the longer it took the rarer it is.
  const auto now = clock::now();
  next_lookup_ = now + (connections_.empty() ? first_lookup_pause : lookup_pause) + (now - asked);
  ticks_.cancel();
  running_.end();
}

// Deadlines.

/// When to look next: soon while calls wait for a connection, and never where nothing was asked
/// since the last look; submit() then wakes the thread.  Nothing: all is over.
std::optional<io_client::clock::time_point> io_client::next_look() {
  const lock_guard held(mutex_);
  if (stopping_ && calls_.empty()) return {};
  const auto now = clock::now();
  if (!calls_.empty() && (best_of(links_) == nullptr || !waiting_.empty())) return now + shortest_tick;
  if (!stopping_ && outage_.gone()) return now + longest_tick;
  const std::uint64_t seen = std::exchange(seen_, next_id_);
  if (!calls_.empty() || seen != next_id_)
    return now + std::clamp<clock::duration>(options_.deadline / 20, shortest_tick, longest_tick);
  asleep_ = true;
  return clock::time_point::max();
}

/// Where calls have begun to wait, the next look is not to be as late as it was.
void io_client::look_soon() {
  asio::post(context_, [self = shared_from_this()] { self->ticks_.cancel(); });
}

asio::awaitable<void> io_client::watch() {
  boost::system::error_code ec;
  while (const auto next = next_look()) {
    for (; spawned_ < connections_.size(); ++spawned_) {
      running_.begin();
      spawn(connections_[spawned_]->run(), context_, shared_from_this(), running_);
    }
    const auto due = *next;
    ticks_.expires_at(due);
    co_await ticks_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    const auto now = clock::now();
    if (now > due && now - due > outage::was_stopped) {
      // The program was stopped, and what has come meanwhile has not been seen yet.
      const lock_guard held(mutex_);
      outage_.stopped_for(now - due, now);
      for (const auto& [id, c] : calls_) c->alive = std::min(now, c->alive + (now - due));
      for (io_link& l : links_) l.alive = std::min(now, l.alive + (now - due));
    }
    for (const auto& channel : connections_) channel->check(now);
    look_for_server(now);
    expire(now);
    fence_lost();
    place_waiting();
  }
  for (const auto& channel : connections_) channel->stop();
}

void io_client::expire(clock::time_point now) {
  std::vector<std::shared_ptr<wire::frame_sender>> dead;
  {
    const lock_guard held(mutex_);
    const invariants_hold at_end(*this);
    if (const remote_call* c = now < outage_.notice_at() ? nullptr : longest_waiting(calls_))
      outage_.say(name_ + " to answer " + describe(*c) + (last_trouble_.empty() ? "" : " (" + last_trouble_ + ")"));
    // A server speaks of every request that it has begun, so silence means that it, or the way to
    // it, is in trouble: another connection, perhaps to another address, may do better.
    const auto limit = options_.deadline < 3 * shortest_silence
                           ? clock::duration(options_.deadline)
                           : std::min<clock::duration>(longest_silence, options_.deadline / 3);
    // While a connection still takes what calls have to send, those behind it cannot be heard of.
    for (io_link& l : links_) {
      if (l.number == 0) continue;
      const auto progress = l.sender->stuck_since();
      if (progress == clock::time_point::max() || now - progress > shortest_silence) continue;
      for (const auto& [id, c] : calls_)
        if (c->connection == l.number) c->alive = now;
      heard(now);
    }
    const bool gone = outage_.judge(now);
    for (const auto& [id, c] : calls_) {
      if (c->answered) continue;
      const auto silent = now - c->alive;
      if (c->connection != 0) {
        for (const io_link& l : links_)
          if (l.number == c->connection &&
              ((silent > limit && now - l.alive > limit) || silent > options_.deadline || gone))
            dead.push_back(l.sender);
        continue;
      }
      if ((silent < options_.deadline && !gone) || c->holds != 0) continue;
      c->answered = true;
      c->outcome = given_up(name_, *c, outage_, last_trouble_, refusal_);
      ended_.push_back(c);
    }
    std::erase_if(waiting_, [](const call_ptr& c) { return c->answered; });
    lost_.forget_answered();
  }
  for (const auto& sender : dead) sender->close();
  finish_ended();
}

}  // namespace ooc::storage
