// store::pack() and unpack(): the same array in other stripe objects.
#include <algorithm>
#include <cerrno>
#include <vector>

#include "oocarray/error.hpp"
#include "oocarray/store.hpp"
#include "storage/base/refuse.hpp"
#include "storage/chunked/packed_codec.hpp"
#include "storage/chunked/packed_file.hpp"
#include "storage/layout/fill_pattern.hpp"
#include "storage/service/file_move.hpp"
#include "storage/service/unpublished_file.hpp"

namespace ooc {
namespace {

using storage::store_core;
using named = storage::unpublished_file::named;

constexpr std::uint64_t slab = 16_MiB;

storage::entry packable(store_core& core, std::string_view path) {
  storage::entry e = core.metadata().lookup(path);
  if (e.kind != storage::entry_kind::file || e.array.extents.empty())
    refuse(errc::invalid_request, path, "only an array is packed, and this is none");
  if (e.commit)
    refuse(errc::invalid_request, path,
           "an array with commits goes on to be written, and is not packed; `ooc cp --flatten` makes one without");
  if (storage::has_reserved_grid(e.array))
    refuse(errc::invalid_request, path,
           "an array that may grow in any dimension is not packed; copy its elements to one of fixed extents");
  if (e.size == 0) refuse(errc::invalid_request, path, "it has no elements");
  return e;
}

storage::new_file same_array(const storage::entry& e) {
  storage::new_file f;
  f.size = e.size;
  f.striping = e.striping;
  f.nodes = e.nodes;
  f.sparse = e.sparse;
  f.fill = e.fill;
  f.array = e.array;
  f.mode = e.mode | 0600;
  return f;
}

/// The stripe objects of a packed array, which are made as long as the array, keep what the packed file has: its bytes.
std::uint64_t trimmed(store_core& core, std::string_view path) {
  const storage::opened_file f = core.open(path, storage::open_mode::read);
  if (f.meta.reserved < f.meta.size) return f.meta.reserved;
  const storage::striped_file packed(f.file->shape_handle(), core.nodes());
  const std::uint64_t bytes = storage::bytes_of_packed_file(packed, storage::packed_dataset(f.meta));
  core.set_packed(f, bytes);
  core.metadata().sync();
  return bytes;
}

}  // namespace

std::uint64_t store::pack(std::string_view path, const pack_options& options) const {
  store_core& core = *core_;
  storage::entry e = packable(core, path);
  if (!e.codec.empty()) return trimmed(core, path);
  e.codec = storage::codec_text(options, e.array.element_size, e.size);
  const storage::file_move move(core, e, "packed");
  const storage::entry& from = move.from().meta;
  storage::new_file f = same_array(from);
  f.codec = e.codec;
  f.packed = f.size;
  storage::unpublished_file made(core, from.path, storage::passing_path(from.path), f, named::at_last);
  storage::packing p;
  p.read = [&](std::uint64_t at, std::span<std::byte> to) {
    throw_if(move.from().file->read(request::contiguous(at, to.size()), to.data()));
  };
  p.write = [&](std::uint64_t at, std::span<const std::byte> bytes) {
    throw_if(made.file.file->write(request::contiguous(at, bytes.size()), bytes.data()));
  };
  p.step = options.step;
  p.most = from.size - 1;
  storage::entry as = from;
  as.codec = e.codec;
  if (storage::pack_file(storage::packed_dataset(as), from.size, p) == 0) return from.size;
  made.take_over(from);
  return trimmed(core, path);
}

void store::unpack(std::string_view path, const std::function<void(std::uint64_t bytes)>& step) const {
  store_core& core = *core_;
  const storage::entry e = packable(core, path);
  if (e.codec.empty()) return;
  const storage::file_move move(core, e, "unpacked");
  const storage::entry& from = move.from().meta;
  storage::unpublished_file made(core, from.path, storage::passing_path(from.path), same_array(from), named::at_last);
  std::vector<std::byte> memory(std::min(from.size, slab));
  constexpr std::uint64_t part = 64_KiB;  // of a sparse file only what differs from its fill takes space
  for (std::uint64_t at = 0; at < from.size; at += memory.size()) {
    const std::span<std::byte> now = std::span(memory).first(std::min<std::uint64_t>(memory.size(), from.size - at));
    throw_if(move.from().file->read(request::contiguous(at, now.size()), now.data()));
    request wanted;
    for (std::uint64_t i = 0; i < now.size(); i += part) {
      const auto one = now.subspan(i, std::min<std::uint64_t>(part, now.size() - i));
      if (!from.sparse || !storage::is_filled_with(from.fill, at + i, one)) wanted.add(at + i, i, one.size());
    }
    throw_if(made.file.file->write(wanted, now.data()));
    if (step) step(now.size());
  }
  made.take_over(from);
  core.metadata().sync();
}

}  // namespace ooc
