// A read on its way to the client, a part at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "iod/request_context.hpp"
#include "storage/layout/io_part.hpp"

namespace ooc::iod {

class read_request : public std::enable_shared_from_this<read_request> {
 public:
  /// Begins what the frame asks for, and answers it on whatever thread it ends.  It is among the active
  /// ones.
  static void start(request_context_ptr with, const wire::frame_header& h, described_request r);

  read_request(request_context_ptr with, std::uint64_t id) : with_(std::move(with)), id_(id) {}

 private:
  bool send_quickly();
  void next_part();
  void go_on();
  void get_part();
  void fetch_part(buffer_pool::buffer room);
  void send_part(const failure& f);

  const request_context_ptr with_;
  const std::uint64_t id_;
  wire::io_request what_;
  std::optional<storage::part_cutter> parts_;
  storage::checking who_checks_ = storage::checking::by_caller;
  storage::io_part part_;  // the one in hand, packed
  std::vector<std::uint32_t> sums_;
  buffer_pool::buffer room_;  // for it
};

}  // namespace ooc::iod
