#include "runtime/ranks/array_commit.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "oocarray/array_base.hpp"
#include "runtime/ranks/array_in_doubt.hpp"
#include "runtime/ranks/array_resize.hpp"
#include "runtime/ranks/write_exchange.hpp"
#include "storage/base/packed.hpp"
#include "storage/base/refuse.hpp"
#include "storage/collective/rank_messages.hpp"
#include "storage/service/commits.hpp"

namespace ooc::detail {
namespace {

using bytes = process_group::bytes;

void check_committable(const shared_array& a, const char* operation) {
  a.local().check_writable(operation);
  if (!a.local().file().entry().commit)
    refuse(errc::invalid_request, "array", a.path(),
           "it was made without commits and cannot " + std::string(operation) +
               "; copy it to one that is made with options.commits = true (ooc::copy)");
}

/// All of one store and of groups alike, and none of them twice.
void check_together(std::span<shared_array* const> arrays) {
  const shared_array& first = *arrays.front();
  for (const shared_array* a : arrays) {
    if (std::ranges::count(arrays, a) > 1) refuse(errc::invalid_request, "array", a->path(), "it is given twice");
    check_committable(*a, "be committed");
    a->local().check_unpinned("commit()");
    if (a->ranks() != first.ranks() || a->rank() != first.rank())
      refuse(errc::invalid_request, "array", a->path(),
             "it cannot be committed together with '" + first.path() + "', which other ranks share");
    if (a->local().file().store()->uuid() != first.local().file().store()->uuid())
      refuse(errc::invalid_request, "array", a->path(),
             "it cannot be committed together with '" + first.path() + "', which lies in another store");
  }
}

std::string paths_of(std::span<shared_array* const> arrays) {
  std::string all;
  for (const shared_array* a : arrays) all += (all.empty() ? "'" : ", '") + a->path() + "'";
  return all;
}

/// Of rank 0: what has come of the commit, for all ranks.
bytes commit_files(std::span<shared_array* const> arrays, const std::map<std::string, std::string>& attributes) {
  std::vector<storage::opened_file> files;
  for (shared_array* a : arrays) files.push_back({a->local().file().entry(), a->local().file().striped()});
  storage::packer told;
  try {
    const auto then = storage::commit(*arrays.front()->local().file().store(), files, attributes);
    told.number(1).number(static_cast<std::uint64_t>(then.front().meta.commit->time_ns));
  } catch (const storage::commit_in_doubt& e) {
    const std::string_view what = e.what();
    told.number(0).bytes(std::as_bytes(std::span(what.data(), what.size())));
  }
  return told.take();
}

}  // namespace

void commit_arrays(std::span<shared_array* const> arrays, const std::map<std::string, std::string>& attributes) {
  if (arrays.empty()) return;
  process_group& group = arrays.front()->group();
  const std::string call = "commit of " + paths_of(arrays);
  const auto given = group.together(call, [&] {
    check_together(arrays);
    storage::packer mine;
    for (const auto& [key, value] : attributes)
      mine.bytes(std::as_bytes(std::span(key))).bytes(std::as_bytes(std::span(value)));
    return mine.take();
  });
  for (std::size_t r = 1; r < given.size(); ++r)
    if (given[r] != given.front())
      refuse(errc::invalid_request, call + ": rank " + std::to_string(r) + " gives other attributes than rank 0");
  for (shared_array* a : arrays) write_exchange(*a).sync_before(call);
  const bytes come_of_it = changed_by_rank_0(arrays, "files for " + call, std::string(storage::commit_doubt),
                                             [&] { return commit_files(arrays, attributes); });
  storage::unpacker told(come_of_it);
  const bool made = told.number() != 0;
  if (made) {
    const auto time_ns = static_cast<std::int64_t>(told.number());
    or_refuse_all(arrays, "the commit was made: close the arrays and open them again", [&] {
      for (shared_array* a : arrays) {
        storage::entry e = a->local().file().entry();
        e.commit = {e.commit->number + 1, time_ns, attributes};
        a->local().file().use(a->local().file().store()->opened(std::move(e)));
        a->local().attach(array_geometry(a->geometry()));
      }
    });
    return;
  }
  const auto what = told.bytes();
  const failure why{std::make_error_code(std::errc::timed_out),
                    std::string(reinterpret_cast<const char*>(what.data()), what.size())};
  for (shared_array* a : arrays) refuse_all(*a, why);
  throw io_error::in_full(why.code, why.what);
}

void roll_back_array(shared_array& a) {
  const std::string call = "roll back of '" + a.path() + "'";
  array_file& file = a.local().file();
  const auto told = a.group().together(call, [&] {
    check_committable(a, "be rolled back");
    a.local().check_unpinned("roll_back()");
    if (a.rank() != 0) return bytes{};
    return storage::encode_entry(file.store()->metadata().find(file.entry().id, true));
  });
  const storage::entry committed = storage::decode_entry(told.front());
  change_file(a, call, committed.array.extents, extents_change::all_blocks, [&] {
    return storage::roll_back(*file.store(), {file.entry(), file.striped()});
  });
  file.striped()->forget();  // by rank 0 alone
}

bool has_committed_extents(const shared_array& a) {
  a.local().check_open();
  const storage::entry& now = a.local().file().entry();
  return !now.commit || std::ranges::equal(a.local().file().store()->metadata().find(now.id, true).array.extents,
                                           a.geometry().extents());
}

std::optional<commit_info> last_commit_of(const shared_array& a) {
  a.local().check_open();
  const auto& commit = a.local().file().entry().commit;
  if (!commit) return std::nullopt;
  return storage::commit_info_of(*commit);
}

}  // namespace ooc::detail

namespace ooc {

void commit(std::span<array_base* const> arrays, const std::map<std::string, std::string>& attributes) {
  std::vector<detail::shared_array*> all;
  for (array_base* a : arrays) all.push_back(&a->core().shared());
  detail::commit_arrays(all, attributes);
}

}  // namespace ooc
