// A node in a temporary folder, with calls that wait, and a file to play with.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "storage/node/local_node.hpp"
#include "storage/object/checksum_file.hpp"
#include "storage/object/node_folder.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

namespace fs = std::filesystem;
using namespace ooc::storage;
using bytes = std::vector<std::byte>;

inline shape_ptr make_shape(file_id id, striping s, std::uint64_t size, bool sparse = false, bytes fill = {}) {
  auto f = std::make_shared<file_shape>();
  f->id = id;
  f->striping = s;
  f->size = size;
  f->sparse = sparse;
  f->fill = std::move(fill);
  f->name = "plate/a";
  return f;
}

/// Memory that direct transfers can use.
class aligned_bytes {
 public:
  explicit aligned_bytes(std::size_t n)
      : data_(static_cast<std::byte*>(::operator new (n, std::align_val_t{4096}))), size_(n) {}
  ~aligned_bytes() { ::operator delete (data_, std::align_val_t{4096}); }
  aligned_bytes(const aligned_bytes&) = delete;

  std::byte* data() noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::byte& operator[](std::size_t i) noexcept { return data_[i]; }

 private:
  std::byte* data_;
  std::size_t size_;
};

// The calls of io_service, waiting.

template <class Call>
failure wait_for(Call&& call) {
  std::promise<failure> p;
  call([&](const failure& f) { p.set_value(f); });
  return p.get_future().get();
}

/// Starts a call; its outcome is a future, so that one that never ends fails its test.
template <class Call>
std::future<failure> started(Call&& call) {
  const auto p = std::make_shared<std::promise<failure>>();
  auto result = p->get_future();
  call([p](const failure& f, const auto&...) { p->set_value(f); });
  return result;
}

inline bool has_ended(const std::future<failure>& f) {
  return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

inline failure read(io_service& n, const shape_ptr& f, std::uint32_t stripe_index, const request& r,
                    std::byte* memory) {
  return wait_for(
      [&](completion done) { n.read(f, stripe_index, std::make_shared<const request>(r), memory, std::move(done)); });
}

inline failure write(io_service& n, const shape_ptr& f, std::uint32_t stripe_index, const request& r,
                     const std::byte* memory) {
  return wait_for(
      [&](completion done) { n.write(f, stripe_index, std::make_shared<const request>(r), memory, std::move(done)); });
}

inline failure create(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.create(f, stripe_index, std::move(done)); });
}

inline failure advance(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.advance(f, stripe_index, std::move(done)); });
}

inline failure resize(io_service& n, const shape_ptr& f, std::uint32_t stripe_index, std::uint64_t old) {
  return wait_for([&](completion done) { n.resize(f, stripe_index, old, std::move(done)); });
}

inline failure sync(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.sync(f, stripe_index, std::move(done)); });
}

/// A sync of a file's first stripe object that nobody waits for yet.
inline std::future<failure> begin_sync(io_service& n, const shape_ptr& f) {
  return started([&](completion done) { n.sync(f, 0, std::move(done)); });
}

inline failure prepare(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.prepare(f, stripe_index, std::move(done)); });
}

inline failure roll_back(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.roll_back(f, stripe_index, std::move(done)); });
}

inline failure trim(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  return wait_for([&](completion done) { n.trim(f, stripe_index, std::move(done)); });
}

inline failure clone(io_service& n, const shape_ptr& f, std::uint32_t stripe_index, const shape_ptr& into,
                     bool copies) {
  return wait_for([&](completion done) { n.clone(f, stripe_index, into, copies, std::move(done)); });
}

inline std::pair<failure, std::vector<byte_interval>> find_changes(io_service& n, const shape_ptr& f,
                                                                   std::uint64_t since,
                                                                   std::uint32_t stripe_index = 0) {
  std::promise<std::pair<failure, std::vector<byte_interval>>> p;
  n.find_changes(f, stripe_index, since, [&](const failure& e, auto r) { p.set_value({e, std::move(r)}); });
  return p.get_future().get();
}

inline failure remove(io_service& n, file_id id) {
  auto gone = std::make_shared<file_shape>();
  gone->id = id;
  return wait_for([&](completion done) { n.remove(gone, std::move(done)); });
}

inline std::pair<failure, verify_report> verify(io_service& n, const shape_ptr& f, std::uint32_t stripe_index = 0) {
  std::promise<std::pair<failure, verify_report>> p;
  n.verify(f, stripe_index, [&](const failure& e, verify_report r) { p.set_value({e, std::move(r)}); });
  return p.get_future().get();
}

inline std::pair<failure, std::vector<file_id>> list(io_service& n) {
  std::promise<std::pair<failure, std::vector<file_id>>> p;
  n.list([&](const failure& e, std::vector<file_id> ids) { p.set_value({e, std::move(ids)}); });
  return p.get_future().get();
}

/// A node in a folder of its own, with one file of which it has all.
struct node_with_file {
  explicit node_with_file(std::uint64_t size, striping s = {0, 1, 4096}, local_node_options o = {})
      : node(open_local_node(folder.path(), o)), shape(make_shape(1, s, size)) {
    if (const failure f = create(*node, shape)) throw std::runtime_error(f.what);
  }

  failure read(const request& r, std::byte* to) { return testing::read(*node, shape, 0, r, to); }
  failure write(const request& r, const std::byte* from) { return testing::write(*node, shape, 0, r, from); }

  temporary_folder folder;
  std::shared_ptr<served_node> node;
  shape_ptr shape;
};

/// Changes one byte of a file behind everybody's back.
inline void flip_byte(const fs::path& file, std::uint64_t offset) {
  std::fstream s(file, std::ios::in | std::ios::out | std::ios::binary);
  s.seekg(static_cast<std::streamoff>(offset));
  const char c = static_cast<char>(s.get() ^ 0x40);
  s.seekp(static_cast<std::streamoff>(offset));
  s.put(c);
}

/// The `.sum` file of a stripe object, opened for a look or a change.
inline checksum_file open_sums(const fs::path& folder, file_id id) {
  const auto open = [&] { return file_descriptor(::open(node_folder(folder).sums(id).c_str(), O_RDWR | O_CLOEXEC)); };
  checksum_header h;
  if (checksum_file(open(), {}).read_header(h) != 0) throw std::runtime_error("no header");
  return {open(), object_seeds(h.identity())};
}

inline checksum_entry entry_of(const fs::path& folder, file_id id, std::uint64_t chunk) {
  checksum_entry e;
  if (open_sums(folder, id).read(chunk, {&e, 1}) != 0) throw std::runtime_error("no entry");
  return e;
}

inline void set_entry(const fs::path& folder, file_id id, std::uint64_t chunk, checksum_entry e) {
  if (open_sums(folder, id).write(chunk, {&e, 1}) != 0) throw std::runtime_error("no entry");
}

/// Makes the stripe object look as if its unsynced writes had been made before a loss of power.
inline void change_boot(const fs::path& folder, file_id id) {
  const checksum_file sums = open_sums(folder, id);
  checksum_header h;
  if (sums.read_header(h) != 0) throw std::runtime_error("no header");
  h.unsynced.fill(0x11);
  if (sums.write_header(h) != 0) throw std::runtime_error("cannot write the header");
}

/// The node's notes of what this boot has made late become notes of one that has ended.
inline void change_noted_boot(const fs::path& folder) {
  const fs::path file = folder / "oocarray-unsynced";
  std::ifstream in(file);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto at = text.find("boot ") + 5;
  text.replace(at, 32, std::string(32, '1'));
  std::ofstream(file) << text;
}

}  // namespace ooc::testing
