#include "storage/client/remote_node.hpp"

#include <utility>

#include "storage/base/completion_counter.hpp"
#include "storage/client/io_client.hpp"
#include "storage/client/split_request.hpp"
#include "storage/service/node_counters.hpp"
#include "storage/wire/node_calls.hpp"

namespace ooc::storage {

namespace {

/// Bytes: a transfer is sent in several messages where each gets as many as this.
constexpr std::uint64_t least_range = 256 << 10;

/// From requests to calls, and from replies to results.
class remote_node final : public io_service {
 public:
  explicit remote_node(remote_node_options o) : client_(std::make_shared<io_client>(std::move(o), files_)) {
    client_->start();
  }
  ~remote_node() override { client_->stop(); }

  void answer(node_call call, completion done) override {
    switch (call.kind) {
      case io_kind::read:
      case io_kind::write: return transfer(std::move(call), std::move(done));
      case io_kind::permit: return done({});
      case io_kind::sync: counters_.add(&io_stats::syncs, 1); break;
      default: break;
    }
    auto finish = [client = client_.get(), kind = call.kind, told = call.answer, done = std::move(done)](
                      const failure& f, const std::string& reply) {
      if (f || !told) return done(f);
      try {
        wire::decode_answer(kind, reply, *told);
      } catch (const error& e) {
        failure bad = unreadable("the " + name_of(kind), e);
        bad.what = client->name() + ": " + bad.what;
        return done(bad);
      }
      told->distance = client->near() ? locality::host : locality::network;
      done({});
    };
    client_->submit(make(std::move(call), std::move(finish)), {});
  }

  known_epoch epoch_of(const file_shape& file) const override {
    known_epoch k{files_->epoch(), files_->unsynced_in(file.id), {}};
    if (files_->lost_since(file.id, file.opened)) k.lost = lost_with_power(name(), "'" + file.name + "'");
    return k;
  }
  void synced_elsewhere(const file_shape& file, std::uint64_t before) override { files_->synced(file.id, before); }

  std::string name() const override { return client_->name(); }
  io_stats stats() const override { return counters_.snapshot(); }
  /// Payloads go straight to and from the caller's memory.
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  using finish_function = std::function<void(const failure&, std::string)>;

  static finish_function plain(completion done) {
    return [done = std::move(done)](const failure& f, const std::string&) { done(f); };
  }

  static call_ptr make(node_call call, finish_function f) {
    auto c = std::make_shared<remote_call>();
    c->kind = wire::served(call.kind).frame;
    static_cast<node_call&>(c->what) = std::move(call);
    c->finish = std::move(f);
    return c;
  }

  /// One message, or, of a request with very many entries or regions, several.
  void transfer(node_call call, completion done) {
    std::vector<split_request> messages =
        split_requests(std::move(call.wanted), call.file->striping, call.stripe_index);
    if (messages.size() == 1) return transfer_some(std::move(call), std::move(messages.front()), std::move(done));
    // A server refuses those of one message.
    if (call.kind == io_kind::write && overlap(messages))
      return done(
          {errc::invalid_request, name() + ": '" + call.file->name + "': regions of the request overlap in the file"});
    const auto all = std::make_shared<completion_counter>(messages.size(), std::move(done));
    for (split_request& some : messages)
      transfer_some(call, std::move(some), [all](const failure& f) { all->answer(f); });
  }

  /// One message, or, where the server has several addresses, one for each and as many bytes in
  /// each: every connection then carries its part of a long transfer.
  void transfer_some(node_call call, split_request some, completion done) {
    call.wanted = std::move(some.wanted);
    std::vector<region>& regions = some.regions;
    const std::size_t connections = client_->ways();
    // Pieces that overlap in the file are for the server to refuse, who must see them together.
    const bool whole = connections == 1 || (call.kind == io_kind::write && overlap(regions));
    const auto ranges = even_ranges(regions, whole ? 1 : connections, least_range);
    count(call.kind, regions, ranges.size());
    if (ranges.size() == 1) return client_->submit(make(std::move(call), plain(std::move(done))), std::move(regions));
    const auto all = std::make_shared<completion_counter>(ranges.size(), std::move(done));
    for (const byte_range& range : ranges) {
      auto part = make(call, plain([all](const failure& f) { all->answer(f); }));
      part->what.range = range;
      std::vector<region> own = regions;
      cut(own, range);
      client_->submit(part, std::move(own));
    }
  }

  void count(io_kind kind, const std::vector<region>& regions, std::uint64_t messages) {
    std::uint64_t bytes = 0;
    for (const region& p : regions) bytes += p.length;
    const bool reading = kind == io_kind::read;
    counters_.add(reading ? &io_stats::read_requests : &io_stats::write_requests, messages);
    counters_.add(reading ? &io_stats::read_regions : &io_stats::write_regions, node_runs(regions));
    counters_.add(reading ? &io_stats::bytes_read : &io_stats::bytes_written, bytes);
  }

  const std::shared_ptr<unsynced_files> files_ = std::make_shared<unsynced_files>();
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
