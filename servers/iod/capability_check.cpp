#include "iod/capability_check.hpp"

#include <cerrno>
#include <memory>
#include <utility>

namespace ooc::iod {

namespace {

constexpr std::size_t max_known = 1 << 14;  // some 8 MiB

failure refuse(int error, const std::string& why) { return {{error, std::generic_category()}, why}; }

std::string rights_text(std::uint32_t rights) {
  return rights == wire::right_read     ? "read it"
         : rights == wire::right_write  ? "write it"
         : rights == wire::right_make   ? "make its stripe objects"
         : rights == wire::right_resize ? "change its size"
                                        : "remove its stripe objects";
}

}  // namespace

void capability_check::set_store(const std::string& uuid, const wire::capability_public_key& key) {
  const lock_guard lock(mutex_);
  if (key_ == key && uuid_ == uuid) return;
  uuid_ = uuid;
  key_ = key;
  known_.clear();
}

failure capability_check::check(const std::string& capability, storage::shape_ptr& described, std::uint32_t rights,
                                const connected_user& who) {
  const storage::file_shape& f = *described;
  const storage::file_id file = f.id;
  const lock_guard lock(mutex_);
  if (!key_)
    return refuse(EAGAIN,
                  "this I/O server does not belong to a store yet; it waits for the metadata "
                  "server (`ooc ping` shows whether that runs)");
  if (capability.empty())
    return refuse(EACCES, "the request came without a capability; open the file through its store");
  const std::int64_t now = wire::seconds_now();
  auto known = known_.find(capability);
  if (known == known_.end()) {
    const wire::verified_capability v = wire::verify_capability(*key_, uuid_, capability, now);
    if (v.fault != wire::capability_fault::none) return v.reason;
    if (known_.size() >= max_known) std::erase_if(known_, [&](const auto& k) { return k.second.expiry <= now; });
    if (known_.size() >= max_known) known_.clear();
    known = known_.emplace(capability, v.granted).first;
  }
  const wire::capability& c = known->second;
  if (c.uid != who.uid || c.holder != who.holder)
    return refuse(EACCES, "the capability was made for user " + std::to_string(c.uid) +
                              (c.uid == who.uid ? " with another key" : "") + ", and this is a connection of user " +
                              std::to_string(who.uid) + "; open the file yourself");
  if (c.expiry <= now && reachable_) return refuse(EKEYEXPIRED, "the capability has expired; open the file again");
  if (c.expiry <= who.since)
    return refuse(EKEYEXPIRED,
                  "the capability had expired before this connection was made, and the metadata server, "
                  "which renews it, is out of reach; try again when it is there");
  if (c.file != file)
    return refuse(EACCES, "the capability is for file " + std::to_string(c.file) + ", not for " + std::to_string(file));
  if ((c.rights & rights) != rights)
    return refuse(EACCES, "user " + std::to_string(c.uid) + " was not given the right to " + rights_text(rights) +
                              "; the file's owner can change its mode");
  if (rights == wire::right_remove) return {};
  const wire::file_geometry stated = wire::geometry_of(f.size, f.striping, f.sparse, f.fill);
  if (!stated.same_layout(c.geometry))
    return refuse(EACCES,
                  "the request describes another striping, fill value or kind of space than the "
                  "capability was signed for; open the file again");
  if (rights == wire::right_resize && f.size > c.geometry.size)
    return refuse(EACCES, "the request is for " + std::to_string(f.size) + " bytes, the capability for at most " +
                              std::to_string(c.geometry.size));
  if (f.size > c.geometry.size && f.at_commit)  // what was signed last is of a later one, which has less
    return {errc::conflict,
            "'" + f.name + "': commit " + std::to_string(f.commit) + " is no longer kept; open it again"};
  if (f.size > c.geometry.size) {
    auto smaller = std::make_shared<storage::file_shape>(f);
    smaller->size = c.geometry.size;
    described = std::move(smaller);
  }
  return {};
}

}  // namespace ooc::iod
