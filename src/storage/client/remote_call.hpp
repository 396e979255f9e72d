// One request to an I/O server, from its submission to its completion.  Guarded by the mutex of the
// io_client it belongs to, but for what is said to be constant.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/layout/io_part.hpp"
#include "storage/wire/frame_stream.hpp"
#include "storage/wire/messages.hpp"

namespace ooc::storage {

struct remote_call {
  using clock = std::chrono::steady_clock;

  // Constant.
  wire::frame_kind kind = wire::frame_kind::ping;
  wire::io_request what;  ///< empty for calls that are not about a file
  std::string body;       ///< of those
  std::function<void(const failure&, std::string reply)> finish;
  bool repeat = true;  ///< send again if the connection is lost

  std::uint64_t asked = 0;  ///< next_moment() of the submission
  std::uint64_t id = 0;
  clock::time_point alive;       ///< submission, or the last sign of life from the server
  std::uint64_t connection = 0;  ///< where it was sent, 0: not yet
  std::uint32_t holds = 0;       ///< messages whose payload the sender still looks at
  bool answered = false;
  failure outcome;
  std::string reply;

  // Reading.
  std::optional<part_cutter> parts;  ///< what has not arrived yet
  std::vector<std::uint32_t> sums;
  bool damaged = false;  ///< a part did not match its checksums
  unsigned damages = 0;  ///< attempts that ended so
};

using call_ptr = std::shared_ptr<remote_call>;

/// The regions of the call on its node.  Empty where it is not about bytes.
std::vector<region> regions_of(const remote_call& c);

/// The frames of a call in order.  Those of a write carry payload, whose release is told to
/// `released`; it is called as often as `holds` says.
struct call_frames {
  std::vector<wire::frame_sender::message> messages;
  std::uint32_t holds = 0;
};
call_frames frames_of(const remote_call& c, std::uint64_t id, std::vector<region> regions,
                      const std::function<void(bool)>& released);

/// Takes a part of a read from the reader to its place.  Throws connection_error where it is not
/// the part that must come next.  Runs on the thread of the connection.
boost::asio::awaitable<void> receive_part(remote_call& c, wire::frame_reader& reader, const wire::frame_header& h);

/// Of a call whose answer makes no sense; `call` as of describe().
failure unreadable(const std::string& call, const error& why);

/// "the read of 'plate/a'", for messages.
std::string describe(const remote_call& c);

}  // namespace ooc::storage
