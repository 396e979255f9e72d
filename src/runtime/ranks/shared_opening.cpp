#include "runtime/ranks/shared_opening.hpp"

#include <algorithm>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "oocarray/error.hpp"
#include "runtime/array/array_plan.hpp"
#include "runtime/geometry/stripes_by_rank.hpp"
#include "runtime/pager/pager.hpp"
#include "storage/base/packed.hpp"
#include "storage/base/page.hpp"
#include "storage/base/refuse.hpp"
#include "storage/collective/rank_messages.hpp"
#include "storage/layout/crc32c.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

std::string list_of(const auto& numbers) {
  return to_string(std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
}

/// An element that is no more than zeros is what arrays are filled with anyway.
std::string fill_text(const std::vector<std::byte>& fill) {
  constexpr std::size_t most_shown = 16;
  if (std::count(fill.begin(), fill.end(), std::byte{}) == std::ssize(fill)) return {};
  std::string t = ", fill bytes ";
  for (std::size_t i = 0; i < std::min(fill.size(), most_shown); ++i) {
    constexpr char digits[] = "0123456789abcdef";
    t += digits[std::to_integer<unsigned>(fill[i]) >> 4];
    t += digits[std::to_integer<unsigned>(fill[i]) & 15];
  }
  if (fill.size() > most_shown) t += "... with checksum " + std::to_string(storage::crc32c(fill.data(), fill.size()));
  return t;
}

/// Everything that must be the same on all ranks, what differs most often first.
std::string call_text(const std::string& path, const array_request& r) {
  const array_options<std::byte>& o = r.options;
  const bool creates = r.action == array_request::how::create;
  std::string t = creates ? "create" : r.action == array_request::how::open_read_only ? "open (read only)" : "open";
  t += " of '" + path + "' as " +
       (r.element_type.empty() ? "recorded" : r.element_type + ", rank " + std::to_string(r.rank));
  if (!r.extents.empty()) t += ", extents " + list_of(r.extents);
  const auto add = [&t](const char* name, std::uint64_t n) {
    if (n != 0) t += std::string(", ") + name + " " + std::to_string(n);
  };
  if (r.layout == memory_layout::tiled) t += ", layout_tiled";
  if (creates && o.order == file_order::tiled) t += ", tiled";
  if (!o.tile.empty()) t += ", tile " + list_of(o.tile);
  add("block", o.block);
  add("elements_per_buffer", o.elements_per_buffer);
  if (creates) {
    add("first node", o.stripes.sn);
    add("nodes in use", o.stripes.nn);
    add("stripe size", o.stripes.sf);
    t += fill_text(r.fill);
  }
  if (!o.max_extents.empty()) t += ", max_extents " + list_of(o.max_extents);
  add("shared", o.shared);
  if (creates) add("commits", o.commits);
  if (creates) add("placement by_rank", o.placement == placement::by_rank);
  add("owner_computes", o.owner_computes);
  add("check_conflicts", o.checking == check_conflicts);
  add("open_unfinished", o.unfinished == open_unfinished);
  return t;
}

using node_list = std::vector<std::uint64_t>;

node_list near_nodes(const storage::store_core& core) {
  const std::vector<std::uint32_t> all = storage::near_nodes(core.nodes());
  return {all.begin(), all.end()};
}

/// Of each rank, from what it told when it came.
std::vector<node_list> near_ranks(const std::vector<bytes>& told) {
  std::vector<node_list> all;
  for (const bytes& b : told) {
    storage::unpacker u(b);
    u.number();
    all.push_back(u.numbers());
  }
  return all;
}

}  // namespace

void shared_opening::open() {
  if (request_.options.owner_computes && !array_.grouped())
    refuse(errc::invalid_request, "array", array_.path(),
           "options.owner_computes needs options.group, whose ranks have parts of their own");
  if (request_.action == array_request::how::create_or_open)
    create_or_open(request_);
  else
    open(request_);
}

void shared_opening::create_or_open(const array_request& r) {
  if (r.options.replace)
    refuse(errc::invalid_request, "array", array_.path(),
           "ooc::create_or_open keeps what is there, and options.replace removes it; give one");
  array_request known = r;
  known.action = is_there() ? array_request::how::open : array_request::how::create;
  try {
    open(known);
  } catch (const usage_error& e) {
    const bool was_made_meanwhile =
        known.action == array_request::how::create && !array_.grouped() && e.code() == std::errc::file_exists;
    if (!was_made_meanwhile) throw;
    known.action = array_request::how::open;
    open(known);
  }
}

/// Whether something has the path; rank 0 looks for all.
bool shared_opening::is_there() const {
  const auto look = [&] {
    return storage::lookup_if_there(array_.local().file().store()->metadata(), array_.path()).has_value();
  };
  const auto told = array_.group().together("looking for array '" + array_.path() + "'", [&] {
    return storage::packer().number(array_.rank() == 0 && look() ? 1 : 0).take();
  });
  return storage::unpacker(told.front()).number() != 0;
}

void shared_opening::open(const array_request& r) {
  check_placement(r);
  if (array_.grouped())
    open_together(r);
  else
    array_.local().open(rt_, r);
}

void shared_opening::check_placement(const array_request& r) const {
  if (r.action != array_request::how::create || r.options.placement != placement::by_rank) return;
  if (!array_.grouped())
    refuse(errc::invalid_request, "array", array_.path(),
           "placement::by_rank needs options.group, whose ranks have parts to be placed");
  if (r.options.stripes != striping{})
    refuse(errc::invalid_request, "array", array_.path(),
           "options.stripes and placement::by_rank both say how the file is dealt out; give one");
}

std::vector<bytes> shared_opening::entry_of_leader(const std::string& call, bool may_wait,
                                                   const std::function<void()>& make_or_open) {
  process_group& g = array_.group();
  array_file& file = array_.local().file();
  const bool leads = g.rank() == 0;
  const std::string waiting = "waiting for the writer of '" + file.path() + "'";
  const auto still_waits = [&](bool told) {
    const bytes by_leader = g.broadcast(waiting, storage::packer().number(told).view(), 0);
    return storage::unpacker(by_leader).number() != 0;
  };
  std::exception_ptr failed;
  if (leads) {
    if (may_wait) file.while_waiting([&] { still_waits(true); });
    try {
      make_or_open();
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
    file.while_waiting({});
    if (may_wait) still_waits(false);
  } else {
    while (may_wait && still_waits(true)) {
    }
  }
  return g.together(call, [&] {
    if (failed) std::rethrow_exception(failed);
    if (!leads) return bytes{};
    const storage::entry& meta = file.entry();
    const std::string claimant = file.store()->metadata().claimant();
    return storage::packer()
        .number(meta.capability ? 1 : 0)
        .bytes(storage::encode_entry(meta))
        .bytes(std::as_bytes(std::span(claimant)))
        .take();
  });
}

std::string shared_opening::use_told(const bytes& by_leader) {
  array_file& file = array_.local().file();
  storage::unpacker told(by_leader);
  const bool has_capability = told.number() != 0;  // which everybody must renew for himself
  // Not another opening: the leader's counts for all.
  storage::entry e = storage::decode_entry(told.bytes());
  if (has_capability) {
    const storage::write_claim claim = e.claim;
    e = file.look_up_again();
    e.claim = claim;
  }
  e.opened = storage::next_moment();
  file.use(file.store()->opened(std::move(e)));
  const auto claimant = told.bytes();
  return {reinterpret_cast<const char*>(claimant.data()), claimant.size()};
}

void shared_opening::open_together(const array_request& r) {
  process_group& g = array_.group();
  array_file& file = array_.local().file();
  storage::store_core& core = *file.store();
  const std::string& path = file.path();
  const bool leads = g.rank() == 0;
  const bool creates = r.action == array_request::how::create;
  const std::string call = call_text(path, r);
  const bool by_rank = creates && r.options.placement == placement::by_rank;
  const std::vector<bytes> facts = g.together(call, [&] {
    rt_.pager().account_store(file.store(), core.staging_bytes());
    return storage::packer()
        .number(rt_.pager().default_block_bytes())
        .numbers(by_rank ? near_nodes(core) : node_list{})
        .number(r.options.wait_for_writer.count() > 0)
        .take();
  });
  storage::unpacker of_leader(facts.front());
  const std::uint64_t block = of_leader.number();
  (void)of_leader.numbers();
  const bool may_wait = of_leader.number() != 0;
  const auto set_up = [&](const array_plan& plan) {
    array_.local().set_up(rt_, r, plan, array_.sharing(plan.geometry, plan.stripes));
  };

  // A rank whose budget is too small says so before anything is made.
  array_plan plan{array_geometry({.extents = {1}, .block_bytes = page_bytes}), {}, 0};
  if (creates)
    g.together("memory for " + call, [&] {
      const auto nodes = static_cast<std::uint32_t>(core.nodes().size());
      plan = plan_new(path, r, block, nodes);
      if (by_rank) plan.stripes = stripes_by_rank(path, plan.geometry, near_ranks(facts), nodes);
      set_up(plan);
      return bytes{};
    });
  const std::vector<bytes> entries = entry_of_leader(call, may_wait, [&] {
    if (creates)
      file.create(r, plan);
    else
      file.open(writing_as(r), r.options.wait_for_writer,
                [&](const storage::entry& e) { (void)plan_existing(path, r, e, block); });
  });
  const auto set_up_file = [&] {
    const std::string claimant = leads ? "" : use_told(entries.front());
    if (!creates) plan = plan_existing(path, r, file.entry(), block);
    if (!leads) file.join(writing_as(r), claimant);
    if (!creates) set_up(plan);
    array_.local().attach(plan.geometry);
    return bytes{};
  };
  try {
    g.together("files for " + call, set_up_file);
  } catch (...) {
    if (leads && creates) core.remove(path);  // a failure leaves no file behind
    throw;
  }
}

}  // namespace ooc::detail
