// Tests of what a reader sees of what comes.
#include "storage/wire/frame_stream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <thread>

#include "support/soon.hpp"

using namespace ooc;
using namespace std::chrono_literals;
using ooc::testing::soon;
namespace asio = boost::asio;

namespace {

/// A connection whose one end is a reader with a thread of its own, which reads frames of `bytes`
/// bytes of payload one after the other.
class reading {
 public:
  explicit reading(std::size_t bytes) : memory_(bytes) {
    asio::ip::tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
    sender_.connect(acceptor.local_endpoint());
    reader_ = std::make_unique<wire::frame_reader>(std::make_shared<wire::stream_socket>(acceptor.accept()),
                                                   wire::frame_limits{.body = 1 << 20, .payload = 1 << 30});
    asio::co_spawn(context_, run(), asio::detached);
    thread_ = std::thread([this] { context_.run(); });
  }
  ~reading() {
    sender_.close();
    thread_.join();
  }

  void begin_frame() {
    wire::frame_header h;
    h.kind = wire::frame_kind::write;
    const std::string frame = wire::encode_frame(h, {}, static_cast<std::uint32_t>(memory_.size()));
    asio::write(sender_, asio::buffer(frame));
  }
  void send(std::size_t bytes) {
    asio::write(sender_, asio::buffer(std::vector<char>(bytes)));
    sent_ += bytes;
  }
  /// True as soon as the reader has had all that was sent.
  bool seen(std::chrono::milliseconds patience) {
    return soon([&] { return reader_->received() >= sent_; }, patience);
  }
  const wire::frame_reader& reader() const { return *reader_; }
  unsigned frames() const { return frames_; }

 private:
  asio::awaitable<void> run() {
    try {
      for (;;) {
        co_await reader_->next();
        iovec whole{memory_.data(), memory_.size()};
        co_await reader_->payload({&whole, 1});
        ++frames_;
        // The server may have other things to do before the next frame.
        asio::steady_timer pause(context_, 100ms);
        co_await pause.async_wait(asio::use_awaitable);
      }
    } catch (const wire::connection_error&) {
    }
  }

  asio::io_context context_{1};
  asio::ip::tcp::socket sender_{context_};
  std::vector<char> memory_;
  std::unique_ptr<wire::frame_reader> reader_;
  std::uint64_t sent_ = 0;
  std::atomic<unsigned> frames_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("what comes slowly after much that came fast is seen to come") {
  reading r(256 << 20);
  r.begin_frame();
  for (int i = 0; i < 64; ++i) r.send(1 << 20);
  CHECK(r.seen(10s));
  for (int i = 0; i < 5; ++i) {
    r.send(1000);
    CHECK(r.seen(1s));
  }
  CHECK(r.reader().inside());
}

TEST_CASE("a reader is inside a frame until its payload has been read") {
  reading r(1 << 20);
  CHECK_FALSE(r.reader().inside());
  r.begin_frame();
  CHECK(soon([&] { return r.reader().inside(); }));
  r.send(1 << 20);
  CHECK(soon([&] { return r.frames() == 1; }));
  CHECK_FALSE(r.reader().inside());
}
