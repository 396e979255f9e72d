// The calls of ooc::file that all ranks of a group make together.
#include <algorithm>
#include <utility>

#include "storage/collective/rank_messages.hpp"
#include "storage/collective/reaching_transfer.hpp"
#include "storage/store/file_impl.hpp"

namespace ooc {

/// What all ranks know of a call.
struct file::impl::joint_request {
  std::vector<request> wanted;  ///< by rank
  storage::locality nodes = storage::locality::none;  ///< the farthest one, of any rank
  std::uint64_t size = max_file_size;  ///< of the file, the smallest that a rank knows of

  std::uint64_t end() const {
    std::uint64_t last = 0;
    for (const request& r : wanted) last = std::max(last, r.file_end());
    return last;
  }
};

file::impl::joint_request file::impl::gather(process_group& group, const std::string& call,
                                             const std::function<request()>& mine) const {
  const std::vector<process_group::bytes> told = group.together(call, [&] {
    storage::rank_request r{.wanted = mine()};
    const auto seen = bytes.current();
    if (group.size() > 1) r.nodes = seen->file->farthest_node();
    r.size = seen->meta.size;
    return storage::encode(r);
  });
  joint_request all;
  for (const process_group::bytes& b : told) {
    storage::rank_request r = storage::decode_rank_request(b);
    all.wanted.push_back(std::move(r.wanted));
    all.nodes = std::max(all.nodes, r.nodes);
    all.size = std::min(all.size, r.size);
  }
  return all;
}

void file::impl::transfer_all(process_group& group, const std::string& call, access_kind kind,
                              const joint_request& all, std::byte* memory) {
  const storage::collective_transfer t{.group = group,
                                       .call = call,
                                       .kind = kind,
                                       .wanted = all.wanted,
                                       .memory = memory,
                                       .round_bytes = storage::default_round_bytes};
  if (kind == access_kind::write) storage::check_disjoint(*bytes.current()->file, t);
  const std::uint64_t end = all.end();
  storage::transfer_reaching(
      t, end, all.size,
      {.grow =
           [&](const storage::opened_file* refused, bool anew) {
             if (refused) bytes.learn_of_cut(refused->meta.cuts);
             if (anew) bytes.forget_size();
             (void)bytes.grown_to(end);
           },
       .look = [&](bool anew) { return anew ? bytes.refreshed() : bytes.reaching(end); },
       .how = [&](const storage::striped_file&) { return storage::choose_strategy(kind, all.wanted, all.nodes); }});
}

std::size_t file::read_all(process_group& group, std::span<std::byte> out) {
  impl& i = open_impl();
  const std::string call = "read_all of '" + i.path + "'";
  const lock_guard lock(i.position_mutex);
  const impl::joint_request all = i.gather(
      group, call, [&]() OOC_REQUIRES(i.position_mutex) { return i.readable(out.size()); });
  i.transfer_all(group, call, access_kind::read, all, out.data());
  const std::uint64_t n = all.wanted[static_cast<std::size_t>(group.rank())].bytes();
  i.position += n;
  return n;
}

void file::write_all(process_group& group, std::span<const std::byte> in) {
  impl& i = open_impl();
  const std::string call = "write_all of '" + i.path + "'";
  const lock_guard lock(i.position_mutex);
  const impl::joint_request all = i.gather(group, call, [&]() OOC_REQUIRES(i.position_mutex) {
    i.require_writable();
    return i.writable(in.size());
  });
  i.transfer_all(group, call, access_kind::write, all, const_cast<std::byte*>(in.data()));
  i.position += in.size();
}

void file::read_all(process_group& group, const request& r, std::span<std::byte> out) const {
  impl& i = open_impl();
  const std::string call = "read_all of '" + i.path + "'";
  const impl::joint_request all = i.gather(group, call, [&] {
    i.require_buffer(r, out.size());
    return r;
  });
  i.transfer_all(group, call, access_kind::read, all, out.data());
}

void file::write_all(process_group& group, const request& r, std::span<const std::byte> in) {
  impl& i = open_impl();
  const std::string call = "write_all of '" + i.path + "'";
  const impl::joint_request all = i.gather(group, call, [&] {
    i.require_writable();
    i.require_buffer(r, in.size());
    return r;
  });
  i.transfer_all(group, call, access_kind::write, all, const_cast<std::byte*>(in.data()));
}

}  // namespace ooc
