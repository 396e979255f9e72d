#include "storage/wire/greeting.hpp"

namespace ooc::wire {

namespace {

void take(const handshake_step& step, frame_sender& sender) {
  if (!step.send.empty()) sender.send({step.send, {}, {}});
  if (step.refused) throw connection_error(step.refused.code, step.refused.what);
}

}  // namespace

boost::asio::awaitable<void> greet(client_handshake& hands, frame_reader& reader,
                                   frame_sender& sender) {
  sender.send({hands.hello(), {}, {}});
  frame_header h = co_await reader.next();
  take(hands.answer(h, reader.body()), sender);
  h = co_await reader.next();
  take({{}, hands.finish(h, reader.body())}, sender);
}

boost::asio::awaitable<void> greet(server_handshake& hands, frame_reader& reader,
                                   frame_sender& sender) {
  frame_header h = co_await reader.next();
  take(hands.challenge(h, reader.body()), sender);
  h = co_await reader.next();
  take(hands.welcome(h, reader.body()), sender);
}

}  // namespace ooc::wire
