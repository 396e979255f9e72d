// The calls of ooc::file that all ranks of a group make together.
#include "storage/collective/reaching_transfer.hpp"
#include "storage/store/file_impl.hpp"

namespace ooc {

void file::impl::transfer_all(process_group& group, const std::string& call, access_kind kind,
                              const storage::joint_request& all, std::byte* memory) {
  const storage::collective_transfer t{.group = group,
                                       .call = call,
                                       .kind = kind,
                                       .wanted = all.wanted,
                                       .memory = memory,
                                       .round_bytes = storage::default_round_bytes};
  if (kind == access_kind::write) storage::check_disjoint(*bytes.current()->file, t);
  storage::transfer_reaching(t, all, bytes, [&](const storage::striped_file&) {
    return storage::choose_strategy(kind, all.wanted, all.nodes);
  });
}

std::size_t file::read_all(process_group& group, std::span<std::byte> out) {
  impl& i = open_impl();
  const std::string call = "read_all of '" + i.path + "'";
  const lock_guard lock(i.position_mutex);
  const auto all =
      storage::gather(group, call, i.bytes, [&]() OOC_REQUIRES(i.position_mutex) { return i.readable(out.size()); });
  i.transfer_all(group, call, access_kind::read, all, out.data());
  const std::uint64_t n = all.wanted[static_cast<std::size_t>(group.rank())].bytes();
  i.position += n;
  return n;
}

void file::write_all(process_group& group, std::span<const std::byte> in) {
  impl& i = open_impl();
  const std::string call = "write_all of '" + i.path + "'";
  const lock_guard lock(i.position_mutex);
  const auto all = storage::gather(group, call, i.bytes, [&]() OOC_REQUIRES(i.position_mutex) {
    i.require_writable();
    return i.writable(in.size());
  });
  i.transfer_all(group, call, access_kind::write, all, const_cast<std::byte*>(in.data()));
  i.position += in.size();
}

void file::read_all(process_group& group, const request& r, std::span<std::byte> out) const {
  impl& i = open_impl();
  const std::string call = "read_all of '" + i.path + "'";
  const auto all = storage::gather(group, call, i.bytes, [&] {
    i.require_buffer(r, out.size());
    return r;
  });
  i.transfer_all(group, call, access_kind::read, all, out.data());
}

void file::write_all(process_group& group, const request& r, std::span<const std::byte> in) {
  impl& i = open_impl();
  const std::string call = "write_all of '" + i.path + "'";
  const auto all = storage::gather(group, call, i.bytes, [&] {
    i.require_writable();
    i.require_buffer(r, in.size());
    return r;
  });
  i.transfer_all(group, call, access_kind::write, all, const_cast<std::byte*>(in.data()));
}

}  // namespace ooc
