#include "oocarray/block_file.hpp"

#include <utility>

#include "runtime/block_file/block_core.hpp"

namespace ooc {

using detail::block_core;

block_guard::block_guard(block_guard&& o) noexcept { *this = std::move(o); }

block_guard& block_guard::operator=(block_guard&& o) noexcept {
  if (this == &o) return *this;
  reset();
  core_ = std::move(o.core_);
  data_ = std::exchange(o.data_, nullptr);
  superblock_ = o.superblock_;
  mode_ = o.mode_;
  extent_ = o.extent_;
  stride_ = o.stride_;
  return *this;
}

block_guard::~block_guard() { reset(); }

void block_guard::reset() noexcept {
  if (!core_) return;
  core_->release(superblock_, mode_);
  core_.reset();
  data_ = nullptr;
}

block_file::block_file(std::shared_ptr<block_core> core) : core_(std::move(core)) {}

block_file block_file::create(runtime& rt, const store& s, std::string_view path, const blocking& b,
                              const block_file_options& options) {
  return block_file(std::make_shared<block_core>(rt, s, path, b, options, block_core::how::create));
}

block_file block_file::open(runtime& rt, const store& s, std::string_view path, const blocking& b,
                            const block_file_options& options) {
  return block_file(std::make_shared<block_core>(rt, s, path, b, options, block_core::how::open));
}

block_file block_file::open_read_only(runtime& rt, const store& s, std::string_view path, const blocking& b,
                                      const block_file_options& options) {
  return block_file(std::make_shared<block_core>(rt, s, path, b, options, block_core::how::open_read_only));
}

block_core& block_file::core() const {
  if (!core_) throw usage_error(errc::closed, "this block_file has been moved from");
  return *core_;
}

void block_file::read_block(const block_coordinates& at, std::span<std::byte> to) { core().read_block(at, to); }

void block_file::write_block(const block_coordinates& at, std::span<const std::byte> from) {
  core().write_block(at, from);
}

block_guard block_file::pin(const block_coordinates& at, access_mode mode) { return core().pin(at, mode); }

block_guard block_file::overwrite(const block_coordinates& at) { return core().overwrite(at); }

void block_file::prefetch(const block_coordinates& at) { core().prefetch(at); }

void block_file::writeback(durability d) { core().writeback(d); }

void block_file::invalidate() { core().invalidate(false); }

void block_file::invalidate(discard_t) { core().invalidate(true); }

void block_file::close() {
  if (core_) core_->close();
}

const std::string& block_file::path() const { return core().path(); }

const blocking& block_file::shape() const { return core().shape(); }

striping block_file::striping() const { return core().striping(); }

std::uint64_t block_file::dirty_superblocks() const { return core().dirty_superblocks(); }

}  // namespace ooc
