// What happens to a call:
//
//     submitted -> waiting -> on a connection -> answered -> finished
//                     ^            | lost
//                     +-- fenced --+
//
// `waiting_` holds calls that no connection has; every call that is not finished is in `calls_`.  A
// call is finished when it was answered, or when its time is up and no connection has it, and no
// sender looks at its payload any more.
#include "storage/remote/remote_node.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "storage/io_worker.hpp"
#include "storage/remote/remote_call.hpp"
#include "storage/remote/remote_channel.hpp"

namespace ooc::storage {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using clock = remote_call::clock;
using wire::frame_header;
using wire::frame_kind;

namespace {

constexpr unsigned max_damages = 4;
// A server says every second what it is busy with.
constexpr auto shortest_silence = 3s, longest_silence = 10s;

class client final : public channel_owner, public std::enable_shared_from_this<client> {
 public:
  explicit client(remote_node_options o) : options_(std::move(o)), ticks_(context_) {
    std::size_t index = 0;
    for (const std::string& address : options_.addresses) {
      channels_.push_back(std::make_unique<remote_channel>(context_, *this, index++, address));
      links_.emplace_back().shortest = address.starts_with("unix:");
    }
    name_ = "node " + std::to_string(options_.index) + " (" + options_.addresses.front() + ")";
    asio::co_spawn(context_, watch(), asio::detached);
  }

  void start() {
    thread_ = std::thread([self = shared_from_this()] { self->context_.run(); });
  }

  /// Waits for every call, then for the thread, unless it is the caller.
  void stop() {
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      if (std::this_thread::get_id() != thread_.get_id())
        idle_.wait(lock, [&] { return calls_.empty(); });
    }
    asio::post(context_, [this] { close_when_idle(); });
    if (std::this_thread::get_id() == thread_.get_id())
      thread_.detach();
    else
      thread_.join();
  }

  void submit(call_ptr c) {
    std::vector<piece> pieces = pieces_of(*c);
    count(*c, pieces);
    std::unique_lock lock(mutex_);
    c->id = next_id_++;
    c->alive = clock::now();
    calls_.emplace(c->id, c);
    place(std::move(lock), c, std::move(pieces));
  }

  const std::string& name() const noexcept { return name_; }
  /// Known as soon as a call has been answered.
  bool near() const noexcept { return near_; }
  node_counters counters;

  // What the channels say.

  const remote_node_options& options() const noexcept override { return options_; }

  std::uint32_t next_connection() override { return ++connections_; }

  void channel_up(std::size_t channel, std::uint32_t number,
                  std::shared_ptr<wire::frame_sender> sender, bool near) override {
    std::unique_lock lock(mutex_);
    links_[channel].begin(number, std::move(sender));
    near_ = near_ || near;
    last_trouble_.clear();
    std::deque<call_ptr> now = std::exchange(waiting_, {});
    const bool fence = !lost_.empty() && !fencing_;
    fencing_ = fencing_ || fence;
    lock.unlock();
    if (fence) send_fence();
    for (const call_ptr& c : now) {
      std::vector<piece> pieces = pieces_of(*c);
      std::unique_lock again(mutex_);
      place(std::move(again), c, std::move(pieces));
    }
  }

  void channel_down(std::size_t channel, const std::string& why) override {
    std::unique_lock lock(mutex_);
    link& l = links_[channel];
    last_trouble_ = channels_[channel]->address() + ": " + why;
    if (l.number != 0) {
      for (auto& [id, c] : calls_) {
        if (c->connection != l.number || c->answered) continue;
        c->connection = 0;
        if (c->repeat) {
          c->lost = true;
          lost_.push_back(c);
          unfenced_.push_back(l.number);
        } else {
          c->answered = true;
          c->outcome = {std::make_error_code(std::errc::connection_reset), why};
          ended_.push_back(c);
        }
      }
      std::sort(unfenced_.begin(), unfenced_.end());
      unfenced_.erase(std::unique(unfenced_.begin(), unfenced_.end()), unfenced_.end());
    }
    l.begin(0, nullptr);
    const bool fence = !lost_.empty() && !fencing_ && best_link() != nullptr;
    fencing_ = fencing_ || fence;
    lock.unlock();
    if (fence) send_fence();
    finish_ended();
  }

  bool wants_connection() const override {
    const std::lock_guard lock(mutex_);
    return !calls_.empty();
  }

  asio::awaitable<void> frame_came(std::size_t channel, wire::frame_reader& reader,
                                   const frame_header& h) override {
    call_ptr c;
    {
      const std::lock_guard lock(mutex_);
      links_[channel].alive = clock::now();
      const auto found = calls_.find(h.id);
      if (found != calls_.end() && found->second->connection == links_[channel].number)
        c = found->second;
      if (c) c->alive = clock::now();
    }
    if (h.kind != frame_kind::reply || !c || c->answered)
      throw wire::connection_error(std::make_error_code(std::errc::protocol_error),
                                   "an answer to no request");
    if (h.has(frame_header::failed)) {
      co_await reader.skip(h.payload_bytes);
      failure f = wire::decode_failure(reader.body());
      // A write whose bytes were damaged on the way is sent again, a few times.
      if (f.code == std::errc::bad_message && c->kind == frame_kind::write &&
          ++c->damages < max_damages)
        send_again(c);
      else
        answered(c, std::move(f), {});
      co_return;
    }
    if (h.payload_bytes != 0) co_await receive(*c, reader, h);
    if (!h.has(frame_header::last)) co_return;
    if (c->parts && !c->parts->at_end())
      throw wire::connection_error(std::make_error_code(std::errc::protocol_error),
                                   "a read that ends too early");
    if (c->damaged)
      damaged(c);
    else
      answered(c, {}, std::string(reader.body()));
  }

 private:
  struct link {
    std::uint32_t number = 0;  // of the connection; 0: down
    std::shared_ptr<wire::frame_sender> sender;
    std::uint64_t outstanding = 0;  // bytes of requests without an answer
    clock::time_point alive;        // when something last came
    bool shortest = false;          // a Unix socket

    void begin(std::uint32_t connection, std::shared_ptr<wire::frame_sender> s) {
      number = connection;
      sender = std::move(s);
      outstanding = 0;
      alive = clock::now();
    }
    bool better_than(const link& other) const noexcept {
      return shortest != other.shortest ? shortest : outstanding < other.outstanding;
    }
  };

  static std::uint64_t weight(const remote_call& c) {
    return 4096 + (c.what.wanted ? c.what.wanted->bytes() : 0);
  }

  void count(const remote_call& c, const std::vector<piece>& pieces) {
    if (c.kind == frame_kind::read || c.kind == frame_kind::write) {
      std::uint64_t bytes = 0;
      for (const piece& p : pieces) bytes += p.length;
      const bool reading = c.kind == frame_kind::read;
      counters.add(reading ? &io_stats::read_requests : &io_stats::write_requests, 1);
      counters.add(reading ? &io_stats::read_pieces : &io_stats::write_pieces, node_runs(pieces));
      counters.add(reading ? &io_stats::bytes_read : &io_stats::bytes_written, bytes);
    } else if (c.kind == frame_kind::sync) {
      counters.add(&io_stats::syncs, 1);
    }
  }

  link* best_link() {
    link* best = nullptr;
    for (link& l : links_)
      if (l.number != 0 && (best == nullptr || l.better_than(*best))) best = &l;
    return best;
  }

  /// Sends the call, or lets it wait for a connection.
  void place(std::unique_lock<std::mutex> lock, const call_ptr& c, std::vector<piece> pieces) {
    link* const l = best_link();
    if (l == nullptr) {
      waiting_.push_back(c);
      lock.unlock();
      for (const auto& channel : channels_) channel->wake();
      return;
    }
    for (std::size_t i = 0; i < links_.size(); ++i)
      if (links_[i].number == 0 && !l->shortest) channels_[i]->wake();
    c->connection = l->number;
    l->outstanding += weight(*c);
    const auto sender = l->sender;
    if (c->kind == frame_kind::read) {
      c->parts.emplace(std::move(pieces));
      c->damaged = false;
      pieces.clear();
    }
    // A write is held from here on, so that an early loss of the connection cannot end it.
    if (c->kind == frame_kind::write) c->holds = 1;
    lock.unlock();
    call_frames frames = frames_of(*c, c->id, std::move(pieces),
                                   [self = shared_from_this(), c](bool) { self->release(c); });
    if (c->kind == frame_kind::write) {
      lock.lock();
      c->holds += frames.holds;
      lock.unlock();
    }
    for (auto& m : frames.messages) sender->send(std::move(m));
    if (c->kind == frame_kind::write) release(c);
  }

  void release(const call_ptr& c) {
    {
      const std::lock_guard lock(mutex_);
      if (--c->holds != 0) return;
      if (!c->answered) return;
      ended_.push_back(c);
    }
    finish_ended();
  }

  void answered(const call_ptr& c, failure f, std::string reply) {
    {
      const std::lock_guard lock(mutex_);
      if (f) f.what = name_ + ": " + f.what;
      c->outcome = std::move(f);
      c->reply = std::move(reply);
      c->answered = true;
      unload(*c);
      if (c->holds == 0) ended_.push_back(c);
    }
    finish_ended();
  }

  void unload(remote_call& c) {
    for (link& l : links_)
      if (l.number == c.connection && l.number != 0) l.outstanding -= weight(c);
    c.connection = 0;
  }

  void finish_ended() {
    std::vector<call_ptr> ended;
    {
      const std::lock_guard lock(mutex_);
      ended = std::exchange(ended_, {});
      for (const call_ptr& c : ended) calls_.erase(c->id);
      if (calls_.empty()) idle_.notify_all();
    }
    for (const call_ptr& c : ended) c->finish(c->outcome, std::move(c->reply));
  }

  asio::awaitable<void> receive(remote_call& c, wire::frame_reader& reader, const frame_header& h) {
    if (!c.parts || c.parts->at_end())
      throw wire::connection_error(std::make_error_code(std::errc::protocol_error),
                                   "bytes that nobody asked for");
    const io_part part = c.parts->next();
    if (part.sums() != h.sums || part.wire_bytes() != h.payload_bytes)
      throw wire::connection_error(std::make_error_code(std::errc::protocol_error),
                                   "a part of another size than was asked for");
    c.sums.resize(part.sums());
    std::vector<iovec> places{{c.sums.data(), c.sums.size() * 4}};
    append_memory(part, c.memory, places);
    co_await reader.payload(places);
    if (!sums_match(part, c.memory, c.sums.data())) c.damaged = true;
  }

  /// A read brought bytes that are not what was stored: once more, checked by the server too.
  void damaged(const call_ptr& c) {
    if (++c->damages >= max_damages)
      return answered(c,
                      {errc::corrupt, describe(*c) +
                                          ": the bytes were damaged between its disk and here, "
                                          "each of " +
                                          std::to_string(max_damages) +
                                          " times; look at the network and at `ooc verify`"},
                      {});
    send_again(c);
  }

  /// The server is done with the call under its present id; it gets another one.
  void send_again(const call_ptr& c) {
    std::unique_lock lock(mutex_);
    unload(*c);
    calls_.erase(c->id);
    c->id = next_id_++;
    calls_.emplace(c->id, c);
    waiting_.push_back(c);
    lock.unlock();
    place_waiting();
  }

  /// Tells the server, by any connection, that it is to do nothing more for the lost ones.
  void send_fence() {
    auto fence = std::make_shared<remote_call>();
    fence->kind = frame_kind::fence;
    fence->repeat = false;
    std::vector<std::uint64_t> numbers;
    {
      const std::lock_guard lock(mutex_);
      numbers = unfenced_;
    }
    fence->body = wire::encode_fence(numbers);
    fence->finish = [this, numbers](const failure& f, std::string) { fenced(numbers, f); };
    submit(std::move(fence));
  }

  void fenced(const std::vector<std::uint64_t>& numbers, const failure& f) {
    std::deque<call_ptr> again;
    bool fence = false;
    {
      const std::lock_guard lock(mutex_);
      fencing_ = false;
      if (!f) {
        std::erase_if(unfenced_, [&](std::uint64_t n) {
          return std::find(numbers.begin(), numbers.end(), n) != numbers.end();
        });
        // Others may have been lost meanwhile; those wait for the next fence.
        if (unfenced_.empty()) again = std::exchange(lost_, {});
      }
      fence = !lost_.empty() && best_link() != nullptr;
      fencing_ = fence;
      std::erase_if(again, [](const call_ptr& c) { return c->answered; });
      for (const call_ptr& c : again) c->lost = false;
    }
    if (fence) send_fence();
    for (const call_ptr& c : again) {
      std::vector<piece> pieces = pieces_of(*c);
      std::unique_lock lock(mutex_);
      if (c->holds != 0) {  // its old sender has not let go yet: at the next tick
        waiting_.push_back(c);
        continue;
      }
      place(std::move(lock), c, std::move(pieces));
    }
  }

  /// Looks after deadlines.
  asio::awaitable<void> watch() {
    boost::system::error_code ec;
    while (!closed_) {
      ticks_.expires_after(50ms);
      co_await ticks_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
      const auto now = clock::now();
      for (const auto& channel : channels_) channel->check(now);
      expire(now);
      place_waiting();
    }
  }

  void expire(clock::time_point now) {
    std::vector<std::shared_ptr<wire::frame_sender>> dead;
    {
      const std::lock_guard lock(mutex_);
      // A server speaks of every request that it has begun, so silence means that it, or the way
      // to it, is in trouble: another connection, perhaps to another address, may do better.
      const auto limit = options_.deadline < 3 * shortest_silence
                             ? clock::duration(options_.deadline)
                             : std::min<clock::duration>(longest_silence, options_.deadline / 3);
      for (const auto& [id, c] : calls_) {
        if (c->answered) continue;
        const auto silent = now - c->alive;
        if (c->connection != 0) {
          for (const link& l : links_)
            if (l.number == c->connection &&
                ((silent > limit && now - l.alive > limit) || silent > options_.deadline))
              dead.push_back(l.sender);
          continue;
        }
        if (silent < options_.deadline) continue;
        if (c->holds != 0) continue;
        c->answered = true;
        c->outcome = {std::make_error_code(std::errc::timed_out), late(*c)};
        ended_.push_back(c);
      }
      const auto is_over = [](const call_ptr& c) { return c->answered; };
      std::erase_if(waiting_, is_over);
      std::erase_if(lost_, is_over);
    }
    for (const auto& sender : dead) sender->close();
    finish_ended();
  }

  void place_waiting() {
    std::deque<call_ptr> now;
    {
      const std::lock_guard lock(mutex_);
      if (best_link() == nullptr) return;
      for (auto at = waiting_.begin(); at != waiting_.end();)
        if ((*at)->holds == 0) {
          now.push_back(*at);
          at = waiting_.erase(at);
        } else {
          ++at;
        }
    }
    for (const call_ptr& c : now) {
      std::vector<piece> pieces = pieces_of(*c);
      std::unique_lock lock(mutex_);
      place(std::move(lock), c, std::move(pieces));
    }
  }

  std::string late(const remote_call& c) const {
    const double seconds = std::chrono::duration<double>(options_.deadline).count();
    char text[32];
    std::snprintf(text, sizeof text, "%g", seconds);
    std::string what = name_ + ": no answer to " + describe(c) + " within " + text + " s";
    if (!last_trouble_.empty()) what += " (" + last_trouble_ + ")";
    return what + "; is ooc-iod running there? `ooc ping` shows which servers answer";
  }

  void close_when_idle() {
    {
      const std::lock_guard lock(mutex_);
      if (!calls_.empty()) {
        asio::post(context_, [this] { close_when_idle(); });
        return;
      }
    }
    closed_ = true;
    ticks_.cancel();
    for (const auto& channel : channels_) channel->stop();
  }

  const remote_node_options options_;
  std::string name_;
  asio::io_context context_{1};
  asio::steady_timer ticks_;
  std::vector<std::unique_ptr<remote_channel>> channels_;
  std::thread thread_;
  bool closed_ = false;  // the thread's own
  std::uint32_t connections_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::vector<link> links_;  // by channel
  std::map<std::uint64_t, call_ptr> calls_;
  std::deque<call_ptr> waiting_;         // for a connection
  std::deque<call_ptr> lost_;            // for the fence of theirs
  std::vector<std::uint64_t> unfenced_;  // connections of lost calls
  std::vector<call_ptr> ended_;
  std::uint64_t next_id_ = 1;
  std::string last_trouble_;
  std::atomic<bool> near_{false};  // a connection has shown that the server is on this host
  bool fencing_ = false;
  bool stopping_ = false;
};

class remote_node final : public io_service {
 public:
  explicit remote_node(remote_node_options o) : client_(std::make_shared<client>(std::move(o))) {
    client_->start();
  }
  ~remote_node() override { client_->stop(); }

  void read(shape_ptr file, std::uint32_t turn, request_ptr r, std::byte* memory,
            completion done) override {
    auto c = make(frame_kind::read, std::move(file), turn, plain(std::move(done)));
    c->what.wanted = std::move(r);
    c->memory = memory;
    client_->submit(std::move(c));
  }

  void write(shape_ptr file, std::uint32_t turn, request_ptr r, const std::byte* memory,
             completion done) override {
    auto c = make(frame_kind::write, std::move(file), turn, plain(std::move(done)));
    c->what.wanted = std::move(r);
    c->memory = const_cast<std::byte*>(memory);  // of a write: only read
    client_->submit(std::move(c));
  }

  void create(shape_ptr file, std::uint32_t turn, completion done) override {
    client_->submit(make(frame_kind::create, std::move(file), turn, plain(std::move(done))));
  }

  void resize(shape_ptr file, std::uint32_t turn, std::uint64_t old_size,
              completion done) override {
    auto c = make(frame_kind::resize, std::move(file), turn, plain(std::move(done)));
    c->what.old_size = old_size;
    client_->submit(std::move(c));
  }

  void remove(shape_ptr file, completion done) override {
    client_->submit(make(frame_kind::remove, std::move(file), 0, plain(std::move(done))));
  }

  void sync(shape_ptr file, std::uint32_t turn, completion done) override {
    client_->submit(make(frame_kind::sync, std::move(file), turn, plain(std::move(done))));
  }

  void verify(shape_ptr file, std::uint32_t turn,
              std::function<void(const failure&, verify_report)> done) override {
    client_->submit(make(frame_kind::verify, std::move(file), turn,
                         [done = std::move(done)](const failure& f, std::string reply) {
                           done(f, f ? verify_report{} : wire::decode_verify_report(reply));
                         }));
  }

  void list(std::function<void(const failure&, std::vector<file_id>)> done) override {
    client_->submit(make(frame_kind::list, nullptr, 0,
                         [done = std::move(done)](const failure& f, std::string reply) {
                           done(f, f ? std::vector<file_id>{} : wire::decode_ids(reply));
                         }));
  }

  void is_near(std::function<void(const failure&, bool)> done) override {
    client_->submit(make(frame_kind::ping, nullptr, 0,
                         [client = client_.get(), done = std::move(done)](
                             const failure& f, const std::string&) { done(f, client->near()); }));
  }

  std::string name() const override { return client_->name(); }
  io_stats stats() const override { return client_->counters.snapshot(); }
  /// Payloads go straight to and from the caller's memory.
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  using finish_function = std::function<void(const failure&, std::string)>;

  static finish_function plain(completion done) {
    return [done = std::move(done)](const failure& f, const std::string&) { done(f); };
  }

  static call_ptr make(frame_kind kind, shape_ptr file, std::uint32_t turn, finish_function f) {
    auto c = std::make_shared<remote_call>();
    c->kind = kind;
    c->what.file = std::move(file);
    c->what.turn = turn;
    c->finish = std::move(f);
    return c;
  }

  const std::shared_ptr<client> client_;
};

}  // namespace

std::shared_ptr<io_service> open_remote_node(remote_node_options options) {
  if (options.addresses.empty())
    throw usage_error(errc::invalid_request,
                      "node " + std::to_string(options.index) + " has no address");
  return std::make_shared<remote_node>(std::move(options));
}

}  // namespace ooc::storage
