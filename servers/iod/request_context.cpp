#include "iod/request_context.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>

namespace ooc::iod {

using wire::frame_header;

namespace {

constexpr std::uint64_t least_memory = 1 << 10;  // that any request takes
constexpr std::uint64_t small_body = 4 << 10;    // part of what a connection takes anyway
constexpr std::uint64_t few_regions = 512;
constexpr std::uint64_t least_entry = 4;  // bytes in a message

// The most memory that the nested requests in a body of so many bytes can take.
std::uint64_t memory_of_entries(std::uint64_t body) noexcept {
  return std::min(body / least_entry, wire::max_entries) * sizeof(nested_request);
}

}  // namespace

request_context::request_context(session_host& host, std::shared_ptr<wire::stream_socket> socket)
    : host_(host), sender_(std::make_shared<wire::frame_sender>(std::move(socket))) {}

void request_context::set_who(const wire::greeted_peer& peer, storage::client_number number) {
  client_ = peer.says;
  user_ = {client_.who.uid, wire::mark_of(peer.identity), wire::seconds_now()};
  identity_ = peer.identity;
  number_ = number;
}

failure request_context::unexpected(const std::exception& e) const {
  spdlog::error("a request of {} failed: {}", client_.name, e.what());
  std::error_code code = std::make_error_code(std::errc::io_error);
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr)
    code = std::make_error_code(std::errc::not_enough_memory);
  else if (const auto* known = dynamic_cast<const error*>(&e))
    code = known->code();
  return {code, std::string("the I/O server could not serve the request: ") + e.what()};
}

failure request_context::check(wire::io_request& r, std::uint32_t rights) const {
  const std::string name = "'" + r.file->name + "': ";
  if (failure refused = host_.check_capability(r.capability, r.file, rights, user_)) {
    refused.what = name + refused.what;
    return refused;
  }
  const auto& f = *r.file;
  if (f.striping.nn == 0 || f.striping.sf == 0 || r.stripe_index >= f.striping.nn)
    return {errc::invalid_request, name + "no such stripe index, or a striping without nodes"};
  // Of a file that may be cut off the client knows more bytes than it had when the capability was signed.
  const bool may_be_cut = f.cuts != 0;
  if (r.wanted->file_end() > f.size && !(may_be_cut && rights == wire::right_read))
    return {may_be_cut ? errc::cut_off : errc::invalid_request, name + "the request ends at byte " +
                                                                    std::to_string(r.wanted->file_end()) +
                                                                    ", the file at byte " + std::to_string(f.size)};
  return {};
}

failure request_context::check_into(wire::io_request& r) const {
  if (!r.into) return {errc::invalid_request, "'" + r.file->name + "': its bytes are to be shared with no file"};
  failure refused = host_.check_capability(r.into_capability, r.into, wire::right_write, user_);
  if (refused) refused.what = "'" + r.into->name + "': " + refused.what;
  return refused;
}

std::uint64_t request_context::memory_for(const frame_header& h) noexcept {
  if (h.body_bytes > small_body) return most_memory(h);
  return least_memory + h.body_bytes + memory_of_entries(h.body_bytes) + few_regions * sizeof(storage::region);
}

std::uint64_t request_context::most_memory(const frame_header& h) noexcept {
  return least_memory + h.body_bytes + memory_of_entries(h.body_bytes) + wire::max_steps * sizeof(storage::region);
}

std::optional<described_request> request_context::describe(std::string_view body, std::uint32_t rights,
                                                           fair_share::claim& memory, std::uint64_t most) const {
  described_request r{wire::decode_io_request(body), {}};
  if (const failure f = check(r.what, rights)) throw usage_error(f.code, f.what);
  if (memory.amount() >= most)
    r.regions = wire::regions_of(r.what);
  else if (!wire::regions_within(r.what, few_regions, r.regions))
    return {};
  memory.shrink(least_memory + r.what.file->fill.size() + r.what.wanted->entries().size() * sizeof(nested_request) +
                r.regions.capacity() * sizeof(storage::region));
  return r;
}

frame_header request_context::reply_header(std::uint64_t id) const {
  frame_header h;
  h.kind = wire::frame_kind::reply;
  h.id = id;
  h.incarnation = host_.who_am_i().incarnation;
  return h;
}

void request_context::reply(std::uint64_t id, const failure& f, const std::string& body) {
  frame_header h = reply_header(id);
  h.flags = frame_header::last;
  if (f) h.flags |= frame_header::failed;
  active_.answered(id);
  sender_->send({wire::encode_frame(h, f ? wire::encode(f) : body), {}, [self = shared_from_this(), id](bool) {
                   self->active_.end(id);
                 }});
}

failure too_many_regions() {
  return {std::make_error_code(std::errc::not_enough_memory),
          "the I/O server has no memory for the list of the request's regions (24 bytes each): ask "
          "for fewer at a time"};
}

}  // namespace ooc::iod
