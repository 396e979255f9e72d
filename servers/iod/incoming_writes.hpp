// The writes of one connection: their parts are received, one after another, and written on the
// threads of the node; a write is answered when all its parts have been.
//
// Parts are received by the one coroutine that reads the connection; what they hold of memory is
// what the client's share allows, and it waits where there is none.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "iod/request_context.hpp"
#include "storage/layout/io_part.hpp"

namespace ooc::iod {

class incoming_writes : public std::enable_shared_from_this<incoming_writes> {
 public:
  incoming_writes(request_context_ptr with, std::shared_ptr<wire::stream_socket> socket, wire::frame_reader& reader);

  /// A frame of the kind write has come, which is among the active requests, or one of the kind more:
  /// takes its payload from the reader.  A write that is refused has no description but `why`.  Throws
  /// connection_error where a frame does not fit what came before.
  boost::asio::awaitable<void> begin(const wire::frame_header& h, described_request r, const failure& why);
  boost::asio::awaitable<void> receive_more(const wire::frame_header& h);
  /// Nothing more will come.
  void abandon();
  /// True while bytes of the client wait for room here.  From any thread.
  bool waiting() const noexcept { return waiting_; }

 private:
  struct write_job;
  using shared_buffer = std::shared_ptr<buffer_pool::buffer>;
  using shared_sums = std::shared_ptr<std::vector<std::uint32_t>>;

  boost::asio::awaitable<void> receive(const wire::frame_header& h, std::shared_ptr<write_job> w);
  boost::asio::awaitable<void> receive_part(const wire::frame_header& h, std::shared_ptr<write_job> w);
  boost::asio::awaitable<shared_buffer> take_buffer(std::size_t bytes);
  void write_part(const std::shared_ptr<write_job>& w, const storage::io_part& part, shared_buffer bytes,
                  shared_sums sums);
  void written(const std::shared_ptr<write_job>& w, const failure& f);
  void complete(const std::shared_ptr<write_job>& w);
  void answer_if_done(const std::shared_ptr<write_job>& w);

  const request_context_ptr with_;
  const std::shared_ptr<wire::stream_socket> socket_;
  wire::frame_reader& reader_;  // used by receive() only
  std::atomic<bool> waiting_{false};
  std::map<std::uint64_t, std::shared_ptr<write_job>> jobs_;  // whose parts are still coming
};

}  // namespace ooc::iod
