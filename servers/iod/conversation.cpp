#include "iod/conversation.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>

namespace ooc::iod {

using wire::frame_header;

namespace {

// Of the buffers for reads, an eighth, but room for one part to be read while another is sent.
std::uint64_t reading_allowance(const buffer_pool& buffers) {
  return std::max(buffers.limit() / 8, 2 * storage::io_part::max_bytes);
}

}  // namespace

conversation::conversation(session_host& host, std::shared_ptr<wire::stream_socket> socket)
    : host_(host),
      sender_(std::make_shared<wire::frame_sender>(std::move(socket))),
      reading_(std::make_shared<allowance>(reading_allowance(*host.buffers()))) {}

void conversation::set_who(const wire::hello_info& client) {
  client_ = client;
  queue_name_.assign(client.client.begin(), client.client.end());
}

void conversation::queue(fair_queue::place where, std::uint64_t cost, fair_queue::job j,
                         std::function<void(const failure&)> failed) {
  host_.queue().add(queue_name_, where, cost, std::move(j),
                    [this, failed = std::move(failed)](const std::exception& e) {
                      failed(unexpected(e));
                    });
}

failure conversation::unexpected(const std::exception& e) const {
  spdlog::error("a request of {} failed: {}", client_.name, e.what());
  std::error_code code = std::make_error_code(std::errc::io_error);
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
    code = std::make_error_code(std::errc::not_enough_memory);
  else if (const auto* known = dynamic_cast<const error*>(&e))
    code = known->code();
  return {code, std::string("the I/O server could not serve the request: ") + e.what()};
}

failure conversation::check(wire::io_request& r, std::uint32_t rights) const {
  const std::string name = "'" + r.file->name + "': ";
  if (failure refused = host_.check_ticket(r.ticket, r.file, rights)) {
    refused.what = name + refused.what;
    return refused;
  }
  const auto& f = *r.file;
  if (f.striping.nn == 0 || f.striping.sf == 0 || r.turn >= f.striping.nn)
    return {errc::invalid_request, name + "no such turn, or a striping without nodes"};
  if (r.wanted->file_end() > f.size)
    return {errc::invalid_request, name + "the request ends at byte " +
                                       std::to_string(r.wanted->file_end()) +
                                       ", the file at byte " + std::to_string(f.size)};
  return {};
}

std::vector<storage::piece> conversation::pieces_of(std::uint64_t id, const wire::io_request& r) {
  std::vector<storage::piece> pieces = wire::pieces_of(r);
  active_.takes(id, pieces.capacity() * sizeof(storage::piece) +
                        r.wanted->entries().size() * sizeof(nested_request));
  // Only where they came between the parts of a write: else they would have waited.
  if (overfull())
    throw usage_error(errc::invalid_request,
                      "'" + r.file->name + "': the descriptions of this connection's requests take "
                          "more than " + std::to_string(2 * max_memory >> 20) +
                          " MiB; send a write's parts without large requests in between");
  return pieces;
}

frame_header conversation::reply_header(std::uint64_t id) const {
  frame_header h;
  h.kind = wire::frame_kind::reply;
  h.id = id;
  h.incarnation = host_.who_am_i().incarnation;
  return h;
}

void conversation::reply(std::uint64_t id, const failure& f, const std::string& body) {
  frame_header h = reply_header(id);
  h.flags = frame_header::last;
  if (f) h.flags |= frame_header::failed;
  sender_->send({wire::encode_frame(h, f ? wire::encode(f) : body), {}, {}});
  active_.end(id);
}

failure too_many_pieces() {
  return {std::make_error_code(std::errc::not_enough_memory),
          "the I/O server has no memory for the list of the request's pieces (24 bytes each): ask "
          "for fewer at a time"};
}

}  // namespace ooc::iod
