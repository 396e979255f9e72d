#include "runtime/array/file_claims.hpp"

#include <algorithm>
#include <map>
#include <thread>

#include "oocarray/error.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/notice.hpp"

namespace ooc::detail {

using namespace std::chrono_literals;

namespace {

struct open_here {
  std::string holder;       ///< the first one
  std::size_t readers = 0;  ///< none: one who writes holds it
};

/// The holder of each file.  Of the process, as caches are; never destroyed, because arrays with
/// static storage duration may release their claims late.
struct registry {
  ooc::mutex mutex;
  std::map<std::pair<std::string, storage::file_id>, open_here> holders OOC_GUARDED_BY(mutex);
};

registry& file_claims() {
  static registry* const r = new registry;
  return *r;
}

// Between two looks at a claim of somebody else.
constexpr std::chrono::milliseconds shortest_look = 10ms, longest_look = 1s, longest_with_others = 50ms;

std::string in_the_way(const std::string& path, const storage::claim_holder& other, writing w,
                       std::chrono::milliseconds waited) {
  const std::string who = other.name.empty() ? "" : " (" + other.name + ")";
  const std::string so_far = waited.count() == 0 ? "" : "; it was waited for during " + storage::seconds_text(waited);
  if (other.ends.count() == 0)
    return "'" + path + "' " + other.doing + who + so_far + ": " +
           (w == writing::no ? ""
                             : "open it for reading only, or, unless it has commits, with "
                               "options.shared = true in all of them; ") +
           "options.wait_for_writer waits until the other one has closed it";
  return "'" + path + "' was open for writing in a process" + who +
         " that has lost its connection; if it does not come back, the file is free in " +
         storage::seconds_text(std::chrono::ceil<std::chrono::seconds>(other.ends)) + so_far +
         ": try again then, or open it with options.wait_for_writer";
}

std::shared_ptr<void> claim_of(storage::metadata_service& metadata, storage::file_id id, const std::string& path,
                               writing w, std::chrono::milliseconds patience, const std::function<void()>& meanwhile) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now(), end = start + patience;
  bool said = false;
  for (auto pause = shortest_look;; pause = std::min(2 * pause, meanwhile ? longest_with_others : longest_look)) {
    storage::claim_holder other;
    auto claim =
        w == writing::no ? metadata.claim_reader(id, &other) : metadata.claim_writer(id, w == writing::shared, &other);
    if (claim) return claim;
    const auto now = clock::now();
    if (now >= end) throw usage_error(errc::busy, in_the_way(path, other, w, patience));
    if (!said && now - start >= storage::notice_after) {
      said = true;
      storage::notice("waiting for '" + path + "', which " +
                      (other.name.empty() ? std::string("another process") : other.name) +
                      (other.ends.count() == 0 ? " has open, " : " had open when it lost its connection, ") +
                      storage::until_text(end, patience));
    }
    if (meanwhile) meanwhile();
    std::this_thread::sleep_for(std::min<clock::duration>(pause, end - now));
  }
}

}  // namespace

file_claim::file_claim(storage::store_core& store, storage::file_id id, std::string_view path, std::string_view holder,
                       writing w, std::chrono::milliseconds patience, const std::function<void()>& meanwhile)
    : file_claim(std::as_const(store), id, path, holder, w) {
  claim_ = claim_of(store.metadata(), id_, std::string(path), w, patience, meanwhile);
}

file_claim::file_claim(storage::store_core& store, const storage::entry& e, std::string_view path,
                       std::string_view holder, writing w, const std::string& claimant)
    : file_claim(std::as_const(store), e.id, path, holder, w) {
  if (w != writing::no && !claimant.empty()) claim_ = store.metadata().join(claimant, e.id, e.claim);
}

file_claim::file_claim(const storage::store_core& store, storage::file_id id, std::string_view path,
                       std::string_view holder, writing w)
    : uuid_(store.uuid()), id_(id) {
  registry& r = file_claims();
  const lock_guard lock(r.mutex);
  const auto [at, fresh] = r.holders.try_emplace({uuid_, id_}, open_here{std::string(holder), 0});
  open_here& now = at->second;
  if (!fresh && (w != writing::no || now.readers == 0))
    throw usage_error(errc::busy, "'" + std::string(path) + "' is already open in this process (" + now.holder +
                                      (now.readers == 0 ? "" : ", for reading") +
                                      "): use that object, or close it before opening the file again" +
                                      (w == writing::no || now.readers == 0 ? "" : " to write to it"));
  if (w == writing::no) ++now.readers;
  held_ = true;
}

file_claim& file_claim::operator=(file_claim&& o) noexcept {
  if (this != &o) {
    release();
    uuid_ = std::move(o.uuid_);
    id_ = std::exchange(o.id_, 0);
    held_ = std::exchange(o.held_, false);
    claim_ = std::move(o.claim_);
  }
  return *this;
}

void file_claim::release() noexcept {
  if (!std::exchange(held_, false)) return;
  claim_.reset();
  registry& r = file_claims();
  const lock_guard lock(r.mutex);
  const auto at = r.holders.find({uuid_, id_});
  if (at == r.holders.end()) return;
  if (at->second.readers > 1)
    --at->second.readers;
  else
    r.holders.erase(at);
}

}  // namespace ooc::detail
