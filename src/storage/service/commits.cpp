#include "storage/service/commits.hpp"

#include <chrono>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "storage/base/in_flight.hpp"
#include "storage/base/log.hpp"
#include "storage/base/refuse.hpp"

namespace ooc::storage {

namespace {

constexpr std::size_t greatest_attributes = std::size_t{1} << 20;

// What is given with a commit is text, and is shown with it.
void check_given(const std::map<std::string, std::string>& all) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : all) {
    bytes += key.size() + value.size();
    if (key.empty() || key.size() > 255 || key.find('\0') != key.npos)
      refuse("an attribute of a commit has a name of 1 to 255 bytes");
    if (value.find('\0') != value.npos)
      refuse("attribute '" + key + "' of a commit holds a zero byte: give text, or set it on the array");
  }
  if (bytes > greatest_attributes)
    refuse("the attributes of a commit have at most 1 MiB together, not " + std::to_string(bytes) +
           " bytes: set them on the array, whose commit has them too");
}

// Whether commit `wanted` of file `id` has been made although asking for it has ended with `why`: the answer may have
// been lost.
bool was_made(metadata_service& metadata, file_id id, const last_commit& wanted, const std::exception& why) {
  std::optional<last_commit> last;
  try {
    last = metadata.find(id).commit;
  } catch (const std::exception&) {
    // The same as if there had been later ones.
  }
  if (!last || last->number > wanted.number) {
    const auto* failed = dynamic_cast<const error*>(&why);  // other than for memory
    throw commit_in_doubt(failed ? failed->code() : std::make_error_code(std::errc::not_enough_memory),
                          std::string(why.what()) + "; " + std::string(commit_doubt));
  }
  // Another program may have been given the file meanwhile, and have committed.
  return last->number == wanted.number && last->time_ns == wanted.time_ns && last->attributes == wanted.attributes;
}

// The space of what the commits before these had.  These are made, whatever comes of it: nothing is thrown.
void give_back_before(std::span<const opened_file> made) {
  try {
    in_flight trimmed;
    for (const opened_file& f : made)
      if (f.meta.sparse) trimmed.start([&](completion done) { f.file->trim_objects(std::move(done)); });
    if (const failure f = trimmed.wait())
      detail::log_error("the commit was made, and the space of the one before was not given back: " + f.what);
  } catch (const std::bad_alloc&) {
    detail::log_error("the commit was made, and there is no memory to give back the space of the one before");
  }
}

}  // namespace

commit_info commit_info_of(const last_commit& c) {
  return {c.number, std::chrono::system_clock::time_point(std::chrono::nanoseconds(c.time_ns)), c.attributes};
}

std::vector<opened_file> commit(store_core& store, std::span<const opened_file> files,
                                const std::map<std::string, std::string>& attributes) {
  using namespace std::chrono;
  check_given(attributes);
  in_flight prepared;
  for (const opened_file& f : files) prepared.start([&](completion done) { f.file->prepare_objects(std::move(done)); });
  throw_if(prepared.wait());
  calls::decide next{{}, duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count(), attributes};
  std::vector<opened_file> then;
  for (const opened_file& f : files) {
    const std::uint64_t after = f.meta.commit->number;
    next.files.push_back({f.meta.id, after});
    entry e = f.meta;
    e.commit = {after + 1, next.time_ns, attributes};
    then.push_back(store.opened(std::move(e)));
  }
  try {
    store.metadata().ask(next);
  } catch (const std::exception& e) {
    if (then.empty() || !was_made(store.metadata(), files.front().meta.id, *then.front().meta.commit, e)) throw;
  }
  give_back_before(then);
  return then;
}

file_to_change open_to_change(store_core& store, const entry& e, std::string_view to_be) {
  file_to_change f;
  const auto take = [&](const entry& now) {
    f.claim = store.claim_unused(now, to_be);
    return f.claim != nullptr;
  };
  f.file = store.open(e.id, open_mode::read_write, {take, true, true});
  return f;
}

namespace {

void change_attributes(store_core& store, const place& where, const std::function<void(metadata_service&)>& change) {
  const entry e = store.metadata().lookup(where);
  if (!e.commit) return change(store.metadata());
  const file_to_change f = open_to_change(store, e, "given other attributes");
  change(store.metadata());
  (void)commit(store, {&f.file, 1}, f.file.meta.commit->attributes);
}

}  // namespace

void set_attribute(store_core& store, const place& where, std::string_view key, std::string_view value) {
  change_attributes(store, where, [&](metadata_service& m) { m.set_attribute(where, key, value); });
}

void remove_attribute(store_core& store, const place& where, std::string_view key) {
  change_attributes(store, where, [&](metadata_service& m) { m.remove_attribute(where, key); });
}

opened_file roll_back(store_core& store, const opened_file& f) {
  // Whoever had it before may have committed after `f` was looked up.
  const opened_file now = store.refresh(f);
  throw_if(now.file->roll_back_objects());
  store.metadata().ask(calls::roll_back{now.meta.id});
  return store.refresh(now);
}

}  // namespace ooc::storage
