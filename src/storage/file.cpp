#include "oocarray/file.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>
#include <utility>

#include "oocarray/error.hpp"
#include "storage/partition_view.hpp"
#include "storage/store_core.hpp"
#include "storage/stripe_choice.hpp"

namespace ooc {

using storage::opened_file;
using storage::store_core;

namespace {

constexpr std::uint64_t max_size = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw usage_error(errc::invalid_request, "'" + path + "': " + why);
}

}  // namespace

/// `state_mutex` guards `now`; `position_mutex` guards position and view and is held during the
/// calls that use them.  Order: position_mutex before state_mutex.
struct file::impl {
  std::shared_ptr<store_core> core;
  file_access access;
  std::string path;

  mutable std::mutex state_mutex;
  std::shared_ptr<const opened_file> now;  // as last seen; replaced when the size changes

  mutable std::mutex position_mutex;
  std::uint64_t position = 0;
  std::optional<partition> view;

  impl(std::shared_ptr<store_core> c, file_access a, opened_file f)
      : core(std::move(c)),
        access(a),
        path(f.meta.path),
        now(std::make_shared<const opened_file>(std::move(f))) {}

  std::shared_ptr<const opened_file> current() const {
    const std::lock_guard lock(state_mutex);
    return now;
  }

  std::shared_ptr<const opened_file> replace(opened_file f) {
    auto next = std::make_shared<const opened_file>(std::move(f));
    const std::lock_guard lock(state_mutex);
    now = next;
    return next;
  }

  /// The file as it is, if it may now reach `end`; asks the metadata service only where what was
  /// seen last is too short.
  std::shared_ptr<const opened_file> reaching(std::uint64_t end) {
    auto f = current();
    return f->meta.size >= end ? f : replace(core->refresh(*f));
  }

  std::shared_ptr<const opened_file> grown_to(std::uint64_t end) {
    auto f = reaching(end);
    if (f->meta.size >= end) return f;
    require_bytes(*f);
    return replace(core->grow(*f, end));
  }

  void require_bytes(const opened_file& f) const {
    if (!f.meta.array.extents.empty())
      refuse(path, "it holds an array, whose size follows from its extents; resize the array");
  }

  void require_writable() const {
    if (access != file_access::read_write)
      throw usage_error({EBADF, std::generic_category()},
                        "'" + path + "' was opened for reading only");
  }

  void read(const request& r, std::span<std::byte> out) {
    if (out.size() < r.memory_end())
      refuse(path, "the request needs a buffer of " + std::to_string(r.memory_end()) +
                       " bytes, not " + std::to_string(out.size()));
    throw_if(reaching(r.file_end())->file->read(r, out.data()));
  }

  void write(const request& r, std::span<const std::byte> in) {
    require_writable();
    if (in.size() < r.memory_end())
      refuse(path, "the request needs a buffer of " + std::to_string(r.memory_end()) +
                       " bytes, not " + std::to_string(in.size()));
    throw_if(grown_to(r.file_end())->file->write(r, in.data()));
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) {
    if (out.empty() || offset > max_size) return 0;
    const std::uint64_t wanted = std::min<std::uint64_t>(out.size(), max_size - offset);
    const auto f = reaching(offset + wanted);
    if (f->meta.size <= offset) return 0;
    const std::uint64_t n = std::min(wanted, f->meta.size - offset);
    throw_if(f->file->read(request::contiguous(offset, n), out.data()));
    return static_cast<std::size_t>(n);
  }

  std::size_t read_view(const partition& p, std::span<std::byte> out) {
    if (out.empty()) return 0;
    auto size = storage::view_size(p, current()->meta.size);
    if (position > size || out.size() > size - position)
      size = storage::view_size(p, replace(core->refresh(*current()))->meta.size);
    if (position >= size) return 0;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size - position));
    read(storage::view_request(p, position, n, access_kind::read), out);
    return n;
  }
};

file::file(std::unique_ptr<impl> i) : impl_(std::move(i)) {}
file::file(file&&) noexcept = default;
file& file::operator=(file&&) noexcept = default;
file::~file() = default;

file file::create(const store& s, std::string_view path, const file_options& options) {
  storage::new_file f;
  f.size = options.size;
  f.striping = options.striping;
  f.sparse = options.sparse;
  f.fill = options.fill;
  f.mode = options.mode;
  if (f.striping.sf == 0)
    f.striping.sf =
        storage::choose_stripe(options.size, 0, 0, f.striping.nn != 0 ? f.striping.nn : s.nodes());
  return file(std::make_unique<impl>(s.core(), file_access::read_write, s.core()->create(path, f)));
}

file file::open(const store& s, std::string_view path, file_access access) {
  const auto mode =
      access == file_access::read_only ? storage::open_mode::read : storage::open_mode::read_write;
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

const std::string& file::path() const {
  return open_impl().path;
}

striping file::striping() const {
  return open_impl().current()->meta.striping;
}

std::uint64_t file::size() const {
  impl& i = open_impl();
  return i.replace(i.core->refresh(*i.current()))->meta.size;
}

std::size_t file::read(std::span<std::byte> out) {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  const std::size_t n = i.view ? i.read_view(*i.view, out) : i.read_at(i.position, out);
  i.position += n;
  return n;
}

void file::write(std::span<const std::byte> in) {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  i.require_writable();
  i.write(i.view ? storage::view_request(*i.view, i.position, in.size(), access_kind::write)
                 : request::contiguous(i.position, in.size()),
          in);
  i.position += in.size();
}

std::uint64_t file::seek(std::int64_t distance, seek_from origin) {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  std::uint64_t from = 0;
  if (origin == seek_from::current) from = i.position;
  if (origin == seek_from::end) {
    const std::uint64_t bytes = size();
    from = i.view ? storage::view_size(*i.view, bytes) : bytes;
  }
  const std::uint64_t back = distance < 0 ? 0 - static_cast<std::uint64_t>(distance) : 0;
  if (back > from) refuse(i.path, "seek to a position before the beginning");
  if (distance > 0 && static_cast<std::uint64_t>(distance) > max_size - from)
    refuse(i.path, "seek past 2^63 - 1 bytes");
  i.position = distance < 0 ? from - back : from + static_cast<std::uint64_t>(distance);
  return i.position;
}

std::uint64_t file::tell() const {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  return i.position;
}

std::size_t file::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  return open_impl().read_at(offset, out);
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

void file::read(const request& r, std::span<std::byte> out) const {
  open_impl().read(r, out);
}

void file::write(const request& r, std::span<const std::byte> in) {
  open_impl().write(r, in);
}

void file::set_view(const partition& p) {
  impl& i = open_impl();
  if (p.gsize == 0 || p.stride < p.gsize || p.offset > max_size || p.stride > max_size)
    refuse(i.path, "view: gsize must be above 0, stride at least gsize, and all below 2^63");
  const std::lock_guard lock(i.position_mutex);
  i.view = p;
  i.position = 0;
}

void file::clear_view() {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  i.view.reset();
  i.position = 0;
}

std::optional<partition> file::view() const {
  impl& i = open_impl();
  const std::lock_guard lock(i.position_mutex);
  return i.view;
}

void file::truncate(std::uint64_t size) {
  impl& i = open_impl();
  i.require_writable();
  const auto f = i.current();
  i.require_bytes(*f);
  i.replace(i.core->resize(*f, size, {}));
}

void file::sync() {
  impl& i = open_impl();
  i.core->sync(*i.current());
}

}  // namespace ooc
