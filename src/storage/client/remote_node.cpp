#include "storage/client/remote_node.hpp"

#include <utility>

#include "storage/base/completion_counter.hpp"
#include "storage/client/io_client.hpp"
#include "storage/client/split_request.hpp"
#include "storage/service/node_counters.hpp"

namespace ooc::storage {

using wire::frame_kind;

namespace {

/// Bytes: a transfer is sent in several messages where each gets as many as this.
constexpr std::uint64_t least_range = 256 << 10;

/// From requests to calls, and from replies to results.
class remote_node final : public io_service {
 public:
  explicit remote_node(remote_node_options o) : client_(std::make_shared<io_client>(std::move(o))) { client_->start(); }
  ~remote_node() override { client_->stop(); }

  void read(shape_ptr file, std::uint32_t stripe_index, request_ptr r, std::byte* memory, completion done) override {
    transfer(frame_kind::read, std::move(file), stripe_index, std::move(r), memory, std::move(done));
  }

  void write(shape_ptr file, std::uint32_t stripe_index, request_ptr r, const std::byte* memory,
             completion done) override {
    transfer(frame_kind::write, std::move(file), stripe_index, std::move(r),
             const_cast<std::byte*>(memory),  // of a write: only read
             std::move(done));
  }

  void create(shape_ptr file, std::uint32_t stripe_index, completion done) override {
    submit(make(frame_kind::create, std::move(file), stripe_index, plain(std::move(done))));
  }

  void resize(shape_ptr file, std::uint32_t stripe_index, std::uint64_t old_size, completion done) override {
    auto c = make(frame_kind::resize, std::move(file), stripe_index, plain(std::move(done)));
    c->what.old_size = old_size;
    submit(c);
  }

  void remove(shape_ptr file, completion done) override {
    submit(make(frame_kind::remove, std::move(file), 0, plain(std::move(done))));
  }

  void advance(shape_ptr file, std::uint32_t stripe_index, completion done) override {
    submit(make(frame_kind::advance, std::move(file), stripe_index, plain(std::move(done))));
  }

  void sync(shape_ptr file, std::uint32_t stripe_index, completion done) override {
    counters_.add(&io_stats::syncs, 1);
    submit(make(frame_kind::sync, std::move(file), stripe_index, plain(std::move(done))));
  }

  void prepare(shape_ptr file, std::uint32_t stripe_index, completion done) override {
    submit(make(frame_kind::prepare, std::move(file), stripe_index, plain(std::move(done))));
  }

  void roll_back(shape_ptr file, std::uint32_t stripe_index, completion done) override {
    submit(make(frame_kind::roll_back, std::move(file), stripe_index, plain(std::move(done))));
  }

  void verify(shape_ptr file, std::uint32_t stripe_index,
              std::function<void(const failure&, verify_report)> done) override {
    submit(make(frame_kind::verify, std::move(file), stripe_index,
                decoded(frame_kind::verify, wire::decode_verify_report, std::move(done))));
  }

  void list(std::function<void(const failure&, std::vector<file_id>)> done) override {
    submit(make(frame_kind::list, nullptr, 0, decoded(frame_kind::list, wire::decode_ids, std::move(done))));
  }

  void find_locality(std::function<void(const failure&, locality)> done) override {
    submit(make(frame_kind::ping, nullptr, 0,
                [client = client_.get(), done = std::move(done)](const failure& f, const std::string&) {
                  done(f, client->near() ? locality::host : locality::network);
                }));
  }

  std::string name() const override { return client_->name(); }
  io_stats stats() const override { return counters_.snapshot(); }
  /// Payloads go straight to and from the caller's memory.
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  using finish_function = std::function<void(const failure&, std::string)>;

  static finish_function plain(completion done) {
    return [done = std::move(done)](const failure& f, const std::string&) { done(f); };
  }

  template <class Result>
  finish_function decoded(frame_kind kind, Result (*decode)(std::string_view),
                          std::function<void(const failure&, Result)> done) const {
    return [kind, decode, done = std::move(done), name = name()](const failure& f, const std::string& reply) {
      if (f) return done(f, {});
      Result result;
      try {
        result = decode(reply);
      } catch (const error& e) {
        failure bad = unreadable("the " + wire::kind_name(kind), e);
        bad.what = name + ": " + bad.what;
        return done(bad, {});
      }
      done({}, std::move(result));
    };
  }

  static call_ptr make(frame_kind kind, shape_ptr file, std::uint32_t stripe_index, finish_function f) {
    auto c = std::make_shared<remote_call>();
    c->kind = kind;
    c->what.file = std::move(file);
    c->what.stripe_index = stripe_index;
    c->finish = std::move(f);
    return c;
  }

  void submit(const call_ptr& c) { client_->submit(c, {}); }

  /// One message, or, of a request with very many entries or regions, several.
  void transfer(frame_kind kind, shape_ptr file, std::uint32_t stripe_index, request_ptr r, std::byte* memory,
                completion done) {
    std::vector<split_request> messages = split_requests(std::move(r), file->striping, stripe_index);
    if (messages.size() == 1)
      return transfer_some(kind, std::move(file), stripe_index, std::move(messages.front()), memory, std::move(done));
    // A server refuses those of one message.
    if (kind == frame_kind::write && overlap(messages))
      return done(
          {errc::invalid_request, name() + ": '" + file->name + "': regions of the request overlap in the file"});
    const auto all = std::make_shared<completion_counter>(messages.size(), std::move(done));
    for (split_request& some : messages)
      transfer_some(kind, file, stripe_index, std::move(some), memory, [all](const failure& f) { all->answer(f); });
  }

  /// One message, or, where the server has several addresses, one for each and as many bytes in
  /// each: every connection then carries its part of a long transfer.
  void transfer_some(frame_kind kind, shape_ptr file, std::uint32_t stripe_index, split_request some, std::byte* memory,
                     completion done) {
    auto c = make(kind, std::move(file), stripe_index, {});
    c->what.wanted = std::move(some.wanted);
    c->memory = memory;
    std::vector<region>& regions = some.regions;
    const std::size_t connections = client_->ways();
    // Pieces that overlap in the file are for the server to refuse, who must see them together.
    const bool whole = connections == 1 || (kind == frame_kind::write && overlap(regions));
    const auto ranges = even_ranges(regions, whole ? 1 : connections, least_range);
    count(kind, regions, ranges.size());
    if (ranges.size() == 1) {
      c->finish = plain(std::move(done));
      return client_->submit(c, std::move(regions));
    }
    const auto all = std::make_shared<completion_counter>(ranges.size(), std::move(done));
    for (const byte_range& range : ranges) {
      auto part = make(kind, c->what.file, stripe_index, plain([all](const failure& f) { all->answer(f); }));
      part->what.wanted = c->what.wanted;
      part->what.range = range;
      part->memory = memory;
      std::vector<region> own = regions;
      cut(own, range);
      client_->submit(part, std::move(own));
    }
  }

  void count(frame_kind kind, const std::vector<region>& regions, std::uint64_t messages) {
    std::uint64_t bytes = 0;
    for (const region& p : regions) bytes += p.length;
    const bool reading = kind == frame_kind::read;
    counters_.add(reading ? &io_stats::read_requests : &io_stats::write_requests, messages);
    counters_.add(reading ? &io_stats::read_regions : &io_stats::write_regions, node_runs(regions));
    counters_.add(reading ? &io_stats::bytes_read : &io_stats::bytes_written, bytes);
  }

  const std::shared_ptr<io_client> client_;
  node_counters counters_;
};

}  // namespace

std::shared_ptr<io_service> open_remote_node(remote_node_options options) {
  if (options.addresses.empty() && !options.lookup)
    throw usage_error(errc::invalid_request, "node " + std::to_string(options.index) + " has no address");
  return std::make_shared<remote_node>(std::move(options));
}

}  // namespace ooc::storage
