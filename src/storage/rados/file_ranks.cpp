#include "storage/rados/file_ranks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "storage/layout/claim_fence.hpp"
#include "storage/rados/client_object.hpp"
#include "storage/rados/file_object.hpp"
#include "storage/rados/object_attributes.hpp"
#include "storage/rados/result_of.hpp"

namespace ooc::storage {

namespace {

using namespace std::chrono_literals;

// Where rank 0 has let go first, the others may be about to.
constexpr std::chrono::milliseconds time_to_leave = 5s, between_looks = 100ms;

std::string attribute_of(const std::string& number) { return std::string(rank_prefix) + number; }

/// Of an object that is there.  0, or a negative errno.
int change(rados_pool& files, file_id id, const std::function<void(rados_write_op_t)>& steps) {
  return result_of([&](rados_pool::end ended) {
    files.write(
        object_name(id), 0, "the change of object '" + object_name(id) + "'",
        [&](rados_write_op_t op) {
          files.calls().write_op_assert_exists(op);
          steps(op);
        },
        std::move(ended));
  });
}

// Where that cannot be said now, the rank may be shut out when it has nothing to do with the file any more.
void leave(rados_pool& files, file_id id, const std::string& number) noexcept {
  try {
    const std::string name = attribute_of(number);
    (void)change(files, id, [&](rados_write_op_t op) { files.calls().write_op_rmxattr(op, name.c_str()); });
  } catch (const std::exception&) {
    // As above.
  }
}

}  // namespace

std::shared_ptr<void> join_file(const rank_of_file& rank, const std::string& claimant, file_id id,
                                const write_claim& claim) {
  const std::string name = attribute_of(rank.number), value = text_of(file_rank{name, claim, rank.files->address()});
  std::shared_ptr<void> joined(nullptr,
                               [files = rank.files, id, number = rank.number, process = ::getpid()](std::nullptr_t) {
                                 if (::getpid() == process) leave(*files, id, number);
                               });
  if (const int rc = change(*rank.files, id,
                            [&](rados_write_op_t op) {
                              rank.files->calls().write_op_setxattr(op, name.c_str(), value.data(), value.size());
                            });
      rc < 0)
    throw_if(rank.files->failed(rc, "saying where this rank is"));
  // Last: who gets the claim when the client has ended finds this rank there, or this rank that.
  if (client_has_ended(*rank.clients, claimant))
    throw io_error({ESTALE, std::generic_category()},
                   "store '" + rank.clients->where().name() +
                       "': the metadata server has lost the process that has opened the file for all ranks: open it "
                       "again, in all of them");
  rank.files->shut_out();  // has been done to those whose claims ended for this one
  return joined;
}

void end_ranks(rados_pool& files, const file_shape& f) {
  claim_fence now;
  now.end_before(f.cut ? write_claim{f.generation, true} : f.claim);
  const auto end = std::chrono::steady_clock::now() + time_to_leave;
  for (;; std::this_thread::sleep_for(between_looks)) {
    file_object found;
    const int rc = result_of([&](const rados_pool::end& ended) {
      read_file_object(files, f.id, "the look for ranks of '" + f.name + "'",
                       [&found, ended](int r, const file_object& o) {
                         found = o;
                         ended(r);
                       });
    });
    if (rc < 0) throw_if(files.failed(rc, "looking for ranks of '" + f.name + "'"));
    std::erase_if(found.ranks, [&](const file_rank& r) { return now.holds(r.claim); });
    if (found.ranks.empty()) return;
    if (std::chrono::steady_clock::now() < end) continue;
    std::vector<std::string> addresses;
    for (const file_rank& r : found.ranks) addresses.push_back(r.address);
    files.shut_out(std::move(addresses));
    const int gone = change(files, f.id, [&](rados_write_op_t op) {
      for (const file_rank& r : found.ranks) files.calls().write_op_rmxattr(op, r.attribute.c_str());
    });
    if (gone < 0) throw_if(files.failed(gone, "ending claims to write '" + f.name + "'"));
    return;
  }
}

}  // namespace ooc::storage
