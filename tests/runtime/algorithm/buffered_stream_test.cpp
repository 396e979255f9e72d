#include "runtime/algorithm/buffered_stream.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "support/faulty_io_service.hpp"
#include "support/memory_io_service.hpp"
#include "support/soon.hpp"

using namespace ooc;
using namespace ooc::detail;
using namespace ooc::testing;

namespace {

constexpr std::size_t items = 7, bytes = 16, most_slots = 9;

std::byte byte_of(std::size_t n) { return static_cast<std::byte>(100 + n); }

struct file_of_items {
  explicit file_of_items(std::uint64_t id) {
    storage::file_shape shape;
    shape.id = id;
    shape.striping = {.sn = 0, .nn = 1, .sf = items * bytes};
    shape.size = items * bytes;
    file.emplace(std::make_shared<const storage::file_shape>(shape), storage::striped_file::nodes{node});
    throw_if(file->create_objects());
  }
  void fill() const {
    for (std::size_t n = 0; n < items; ++n)
      throw_if(file->write(place(n), std::vector<std::byte>(bytes, byte_of(n)).data()));
  }
  bool holds_all() const {
    std::vector<std::byte> all(items * bytes);
    throw_if(file->read(request::contiguous(0, all.size()), all.data()));
    for (std::size_t at = 0; at < all.size(); ++at)
      if (all[at] != byte_of(at / bytes)) return false;
    return true;
  }
  static request place(std::uint64_t n) { return request::contiguous(n * bytes, bytes); }

  std::shared_ptr<storage::faulty_io_service> node =
      std::make_shared<storage::faulty_io_service>(std::make_shared<memory_io_service>());
  std::optional<storage::striped_file> file;
};

/// Items go from one file to the other, each through a buffer.
struct copied_items {
  copied_items() { from.fill(); }

  auto begin() {
    return [this](std::uint64_t n, direct_transfer& t, std::byte* to) {
      t.begin_read(*from.file, file_of_items::place(n), to);
    };
  }
  void copy(
      buffered_stream& s, const std::function<void(std::size_t)>& each = [](std::size_t) {}) {
    for (std::size_t n = 0; n < items; ++n) {
      const std::byte* const buffer = s.read(n, items, begin());
      each(n);
      s.write(n).begin_write(*to.file, file_of_items::place(n), buffer);
    }
    s.wait();
  }

  file_of_items from{1}, to{2};
  std::vector<std::byte> memory = std::vector<std::byte>(most_slots * bytes);
};

const std::error_code failed = std::make_error_code(std::errc::io_error);

}  // namespace

TEST_CASE("items go through few buffers in order, with as many reads ahead as were asked for", "[stream]") {
  const std::size_t slots = GENERATE(as<std::size_t>(), 1, 2, 3, most_slots);
  const std::size_t ahead = GENERATE(as<std::size_t>(), 1, 2, 3);
  if (ahead > slots) return;
  copied_items c;
  std::vector<std::uint64_t> begun;
  buffered_stream s(slots, ahead);
  s.use(c.memory.data(), bytes);
  c.copy(s, [&](std::size_t) { begun.push_back(c.from.node->calls(storage::io_kind::read)); });
  for (std::size_t n = 0; n < items; ++n) CHECK(begun[n] == std::min(n + ahead, items));
  CHECK(c.to.holds_all());
}

TEST_CASE("a buffer is read into when what was in it has been written, and not before", "[stream]") {
  copied_items c;
  c.to.node->add({.call = storage::io_kind::write, .nth = 2, .times = 1, .hold = true});
  buffered_stream s(2, 2);
  s.use(c.memory.data(), bytes);
  std::thread copying([&] { c.copy(s); });
  CHECK(soon([&] { return c.to.node->held() == 1; }));
  CHECK(c.from.node->calls(storage::io_kind::read) <= 3);  // items 0 to 2: number 3 needs the buffer of number 1
  c.to.node->release();
  copying.join();
  CHECK(c.to.holds_all());
}

TEST_CASE("a read that fails comes out of the wait for its item, once", "[stream]") {
  copied_items c;
  c.from.node->add({.call = storage::io_kind::read, .nth = 3, .times = 1, .error = failed});
  buffered_stream s(3, 3);
  s.use(c.memory.data(), bytes);
  CHECK_NOTHROW(s.read(0, items, c.begin()));  // the read of number 2 has ended
  CHECK_NOTHROW(s.read(1, items, c.begin()));
  CHECK_THROWS_AS(s.read(2, items, c.begin()), error);
  CHECK(*s.read(3, items, c.begin()) == byte_of(3));
}

TEST_CASE("a write that fails comes out of the call that needs its buffer, or of the wait at the end", "[stream]") {
  const std::uint64_t nth = GENERATE(as<std::uint64_t>(), 2, items);
  copied_items c;
  c.to.node->add({.call = storage::io_kind::write, .nth = nth, .times = 1, .error = failed});
  buffered_stream s(3, 2);
  s.use(c.memory.data(), bytes);
  CHECK_THROWS_AS(c.copy(s), error);
  CHECK(c.to.node->calls(storage::io_kind::write) == (nth == 2 ? 3 : items));
  CHECK_NOTHROW(s.wait());
}

TEST_CASE("a stream that goes away waits for what is on its way to its memory", "[stream]") {
  copied_items c;
  c.from.node->add({.call = storage::io_kind::read, .nth = 2, .times = 1, .hold = true});
  std::atomic<bool> gone{false};
  std::thread reading([&] {
    {
      buffered_stream s(2, 2);
      s.use(c.memory.data(), bytes);
      s.read(0, items, c.begin());
    }
    gone = true;
  });
  CHECK(soon([&] { return c.from.node->held() == 1; }));
  CHECK_FALSE(gone);
  c.from.node->release();
  reading.join();
  CHECK(c.memory[bytes] == byte_of(1));
}

TEST_CASE("what becomes of an item in other memory is its buffer from then on", "[stream]") {
  copied_items c;
  std::vector<std::byte> other(bytes);
  std::byte* spare = other.data();
  buffered_stream s(2, 2);
  s.use(c.memory.data(), bytes);
  std::byte* const first = s.read(0, items, c.begin());
  s.swap_buffer(0, spare);
  CHECK(s.buffer(0) == other.data());
  CHECK(spare == first);
  s.read(1, items, c.begin());
  CHECK(s.read(2, items, c.begin()) == other.data());
  CHECK(other[0] == byte_of(2));
}
