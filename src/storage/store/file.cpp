#include "oocarray/file.hpp"

#include "storage/layout/stripe_choice.hpp"
#include "storage/store/file_impl.hpp"

namespace ooc {

file::file(std::unique_ptr<impl> i) : impl_(std::move(i)) {}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

file file::create(const store& s, std::string_view path, const file_options& options) {
  storage::new_file f;
  f.size = options.size;
  f.striping = storage::with_stripe_size(options.striping, {.file_bytes = options.size}, s.nodes());
  f.sparse = options.sparse;
  f.fill = options.fill;
  f.mode = options.mode;
  return file(std::make_unique<impl>(s.core(), file_access::read_write, s.core()->create(path, f)));
}

file file::open(const store& s, std::string_view path, file_access access) {
  const auto mode = access == file_access::read_only ? storage::open_mode::read : storage::open_mode::read_write;
  return file(std::make_unique<impl>(s.core(), access, s.core()->open(path, mode)));
}

file::impl& file::open_impl() const {
  if (!impl_) throw usage_error(errc::closed, "the file has been closed");
  return *impl_;
}

void file::close() {
  open_impl();
  impl_.reset();
}

const std::string& file::path() const { return open_impl().path; }

striping file::striping() const { return open_impl().bytes.current()->meta.striping; }

std::uint64_t file::size() const { return open_impl().bytes.refreshed()->meta.size; }

std::size_t file::read(std::span<std::byte> out) {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  const request r = i.readable(out.size());
  i.read(r, out);
  i.position += r.bytes();
  return r.bytes();
}

void file::write(std::span<const std::byte> in) {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  i.write(i.writable(in.size()), in);
  i.position += in.size();
}

std::uint64_t file::seek(std::int64_t offset, seek_from origin) {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  std::uint64_t from = 0;
  if (origin == seek_from::current) from = i.position;
  if (origin == seek_from::end) {
    const std::uint64_t end = size();
    from = i.view ? storage::view_size(*i.view, end) : end;
  }
  const std::uint64_t back = offset < 0 ? 0 - static_cast<std::uint64_t>(offset) : 0;
  if (back > from) i.refuse("seek to a position before the beginning");
  if (offset > 0 && static_cast<std::uint64_t>(offset) > max_file_size - from) i.refuse("seek past 2^63 - 1 bytes");
  i.position = offset < 0 ? from - back : from + static_cast<std::uint64_t>(offset);
  return i.position;
}

std::uint64_t file::tell() const {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  return i.position;
}

std::size_t file::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  impl& i = open_impl();
  const request r = i.readable_at(offset, out.size());
  i.read(r, out);
  return r.bytes();
}

void file::write_at(std::uint64_t offset, std::span<const std::byte> in) {
  open_impl().write(request::contiguous(offset, in.size()), in);
}

void file::read(const strided_request& r, std::span<std::byte> out) const {
  open_impl().read(request::strided(r, access_kind::read), out);
}

void file::write(const strided_request& r, std::span<const std::byte> in) {
  open_impl().write(request::strided(r, access_kind::write), in);
}

void file::read(const nested_request& r, std::span<std::byte> out) const {
  request list;
  list.add(r);
  open_impl().read(list, out);
}

void file::write(const nested_request& r, std::span<const std::byte> in) {
  request list;
  list.add(r);
  open_impl().write(list, in);
}

void file::read(const request& r, std::span<std::byte> out) const { open_impl().read(r, out); }

void file::write(const request& r, std::span<const std::byte> in) { open_impl().write(r, in); }

void file::set_view(const partition& p) {
  impl& i = open_impl();
  if (p.gsize == 0 || p.stride < p.gsize || p.offset > max_file_size || p.stride > max_file_size)
    i.refuse("view: gsize must be above 0, stride at least gsize, and all below 2^63");
  const lock_guard lock(i.position_mutex);
  i.view = p;
  i.position = 0;
}

void file::clear_view() {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  i.view.reset();
  i.position = 0;
}

std::optional<partition> file::view() const {
  impl& i = open_impl();
  const lock_guard lock(i.position_mutex);
  return i.view;
}

void file::truncate(std::uint64_t size) {
  impl& i = open_impl();
  i.require_writable();
  i.bytes.resize(size);
}

// A writer that has made the file longer meanwhile may have come to more nodes.
void file::sync() {
  impl& i = open_impl();
  i.bytes.store().sync(*i.bytes.refreshed());
}

}  // namespace ooc
