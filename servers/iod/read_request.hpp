// A read on its way to the client, a part at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "iod/conversation.hpp"
#include "storage/io_part.hpp"

namespace ooc::iod {

class read_request : public std::enable_shared_from_this<read_request> {
 public:
  /// Begins what the frame asks for, and answers it on whatever thread it ends.
  static void start(conversation_ptr with, const wire::frame_header& h, std::string_view body);

  read_request(conversation_ptr with, std::uint64_t id) : with_(std::move(with)), id_(id) {}

 private:
  /// What a part takes of the memory for transfers.
  struct room {
    buffer_pool::buffer bytes;  // goes back before the claim, which lets another read look for it
    allowance::claim claim;
  };

  bool send_quickly();
  void next_part();
  void go_on();
  void queue_part();
  void wait_for_turn();
  void fetch_part(std::function<void()> finished);
  void send_part(const failure& f);

  const conversation_ptr with_;
  const std::uint64_t id_;
  wire::io_request what_;
  std::optional<storage::part_cutter> parts_;
  storage::checking who_checks_ = storage::checking::by_caller;
  storage::io_part part_;  // the one in hand, packed
  std::vector<std::uint32_t> sums_;
  room room_;
};

}  // namespace ooc::iod
