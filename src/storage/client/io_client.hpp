// The calls to one I/O server: which connection each goes to, what is sent again, deadlines.
//
// The life of a call:
//
//     submitted -> waiting -> on a connection -> answered -> finished
//                     ^            | lost
//                     +-- fenced --+
//
// Every call that is not finished is in `calls_`; `waiting_` holds those that no connection has and
// that need no fence.  A call is finished when it was answered, or when its time is up and no
// connection has it, and no sender looks at its payload any more.  Where the connection was lost of a call whose
// time is up, later calls wait for its fence (fenced_calls.hpp).
//
// A server of which nothing comes while calls wait is gone when the deadline has passed since then
// (outage.hpp): all calls fail, later ones at once, and connections are tried until it answers.
//
// A call that uses what the server has lost with its machine's power fails when its turn comes to be sent
// (unsynced_files.hpp).
//
// One of the io_threads runs the connections and calls most completions.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/base/in_flight.hpp"
#include "storage/base/mutex.hpp"
#include "storage/client/fenced_calls.hpp"
#include "storage/client/io_connection.hpp"
#include "storage/client/io_threads.hpp"
#include "storage/client/outage.hpp"
#include "storage/client/remote_call.hpp"
#include "storage/client/remote_node.hpp"
#include "storage/client/unsynced_files.hpp"

namespace ooc::storage {

/// A connection as its client chooses among them.
struct io_link {
  std::uint32_t number = 0;  // of the connection; 0: down
  std::shared_ptr<wire::frame_sender> sender;
  std::uint64_t outstanding = 0;         // bytes of requests without an answer
  remote_call::clock::time_point alive;  // when something last came
  bool shortest = false;                 // a Unix socket
  std::uint64_t epoch = 0;               // of the server there

  bool better_than(const io_link& other) const noexcept {
    return shortest != other.shortest ? shortest : outstanding < other.outstanding;
  }
};

class io_client final : public io_connection_owner, public std::enable_shared_from_this<io_client> {
 public:
  /// Notes in `files` what the server acknowledges.
  io_client(remote_node_options o, std::shared_ptr<unsynced_files> files);

  void start();
  /// Waits for every call, then for what runs.  Called by one of the io_threads (in a completion) it returns at once,
  /// and everything ends with the last call: two of them could else wait for each other.
  void stop();
  /// `regions` of the call, see regions_of().  From any thread.
  void submit(const call_ptr& c, std::vector<region> regions);

  /// Whether the server is on this host; known as soon as a call has been answered.
  bool near() const noexcept { return near_; }
  /// Connections that a long transfer is to be spread over.
  std::size_t ways() const;
  /// "node 3 (host:port)"; "node 3" while no address is known.
  std::string name() const;

  /// Asserts what is said above of calls; the caller has the mutex.
  void check_invariants() const OOC_REQUIRES(mutex_);

  const remote_node_options& options() const noexcept override { return options_; }
  std::uint32_t next_connection() override { return ++last_connection_; }
  void connection_up(std::size_t channel, std::uint32_t number, std::shared_ptr<wire::frame_sender> sender, bool near,
                     std::uint64_t epoch) override;
  void connection_down(std::size_t channel, const std::string& why) override;
  bool wants_connection() const override;
  boost::asio::awaitable<void> frame_came(std::size_t channel, wire::frame_reader& reader,
                                          const wire::frame_header& h) override;

 private:
  using clock = remote_call::clock;

  void heard(clock::time_point now) OOC_REQUIRES(mutex_);
  std::shared_ptr<wire::frame_sender> place(const call_ptr& c, std::vector<region>& regions) OOC_REQUIRES(mutex_);
  void send(wire::frame_sender& sender, const call_ptr& c, std::vector<region> regions) OOC_EXCLUDES(mutex_);
  void place_waiting() OOC_EXCLUDES(mutex_);
  void release(const call_ptr& c) OOC_EXCLUDES(mutex_);
  void send_again(const call_ptr& c);
  void answered(const call_ptr& c, failure f, std::string reply);
  void finish_ended() OOC_EXCLUDES(mutex_);
  void fence_lost() OOC_EXCLUDES(mutex_);
  void fenced(const fenced_calls::connections& numbers, const failure& f);

  void go_to(const std::vector<std::string>& addresses);
  void look_for_server(clock::time_point now);
  void server_found(clock::time_point asked, const std::vector<std::string>& addresses, const std::string& trouble);

  std::optional<clock::time_point> next_look();
  void look_soon();
  boost::asio::awaitable<void> watch();
  void expire(clock::time_point now);

  remote_node_options options_;  // the lookup ends with stop(), the others stay
  const std::shared_ptr<unsynced_files> files_;
  const std::shared_ptr<io_threads> threads_;
  boost::asio::io_context& context_;
  boost::asio::steady_timer ticks_;
  in_flight running_;  // the watch, connections, and a question where the server is, each of which holds the client
  // The thread's own.
  bool asking_ = false;
  std::size_t spawned_ = 0;  // of the connections
  std::uint32_t last_connection_ = 0;
  clock::time_point next_lookup_ = clock::time_point::max();  // the maximum: it is not needed
  std::uint64_t seen_ = 0;                                    // next_id_ at the last look

  // Also guards what of a remote_call changes once it was submitted, but for what its reader has.
  mutable mutex mutex_;
  condition_variable idle_;
  // The thread alone makes more of them and changes their addresses, under the mutex; so it may look at
  // them without, and others with it.
  std::vector<std::unique_ptr<io_connection>> connections_;
  std::vector<io_link> links_ OOC_GUARDED_BY(mutex_);  // by channel
  std::string name_ OOC_GUARDED_BY(mutex_);
  std::map<std::uint64_t, call_ptr> calls_ OOC_GUARDED_BY(mutex_);
  std::deque<call_ptr> waiting_ OOC_GUARDED_BY(mutex_);
  fenced_calls lost_ OOC_GUARDED_BY(mutex_);
  std::vector<call_ptr> ended_ OOC_GUARDED_BY(mutex_);
  std::uint64_t next_id_ OOC_GUARDED_BY(mutex_) = 1;
  std::string last_trouble_ OOC_GUARDED_BY(mutex_);
  failure refusal_ OOC_GUARDED_BY(mutex_);  // of the server, by the metadata server
  outage outage_ OOC_GUARDED_BY(mutex_);
  std::atomic<bool> near_{false};
  bool stopping_ OOC_GUARDED_BY(mutex_) = false;
  bool asleep_ OOC_GUARDED_BY(mutex_) = false;  // until the next submit()
};

}  // namespace ooc::storage
