#include "storage/rados/client_object.hpp"

#include <cerrno>
#include <set>
#include <utility>

#include "storage/rados/object_attributes.hpp"
#include "storage/rados/result_of.hpp"

namespace ooc::storage {

namespace {

constexpr std::string_view rank_prefix = "oocarray.rank.";
constexpr const char* ended_attribute = "oocarray.ended";

std::string rank_attribute(const std::string& number) { return std::string(rank_prefix) + number; }

/// Of an object that is there.  0, or a negative errno.
int set_attribute(rados_pool& pool, const std::string& object, const std::string& name, const std::string& value) {
  return result_of([&](rados_pool::end ended) {
    pool.write(
        object, 0, "the change of object '" + object + "'",
        [&](rados_write_op_t op) {
          pool.calls().write_op_assert_exists(op);
          pool.calls().write_op_setxattr(op, name.c_str(), value.data(), value.size());
        },
        std::move(ended));
  });
}

struct client_attributes {
  std::set<std::string> addresses;  ///< of ranks
  bool ended = false;
};

int read_attributes(rados_pool& pool, const std::string& object, client_attributes& to) {
  object_attributes all(pool.calls());
  const int rc = result_of([&](rados_pool::end ended) {
    pool.read(
        object, 0, "the read of object '" + object + "'", [&](rados_read_op_t op) { all.read_by(op); },
        std::move(ended));
  });
  if (rc < 0) return rc;
  return all.for_each([&](std::string_view name, std::string_view value) {
    if (name.starts_with(rank_prefix)) to.addresses.emplace(value);
    to.ended |= name == ended_attribute;
  });
}

}  // namespace

std::string client_object(const std::string& number) { return std::string(client_prefix) + number; }

void introduce_client(const rados_pool& pool, const std::string& number) {
  pool.put(client_object(number), pool.address());
}

std::vector<std::string> end_client_object(rados_pool& pool, const std::string& number) {
  const std::string object = client_object(number);
  client_attributes found;
  int rc = set_attribute(pool, object, ended_attribute, "1");
  if (rc >= 0) rc = read_attributes(pool, object, found);
  if (rc == -ENOENT) return {};
  if (rc < 0) throw_if(pool.failed(rc, "ending client " + number));
  found.addresses.insert(pool.get(object).value_or(""));
  found.addresses.erase("");
  return {found.addresses.begin(), found.addresses.end()};
}

std::shared_ptr<void> joined_clients::join(const std::string& client) {
  const std::string object = client_object(client);
  {
    const lock_guard lock(mutex_);
    client_attributes found;
    int rc = set_attribute(*pool_, object, rank_attribute(number_), pool_->address());
    if (rc >= 0) rc = read_attributes(*pool_, object, found);
    if (rc == -ENOENT || found.ended)
      throw io_error({ESTALE, std::generic_category()},
                     "store '" + pool_->where().name() +
                         "': the metadata server has lost the process that has opened the file for all ranks: open it "
                         "again, in all of them");
    if (rc < 0) throw_if(pool_->failed(rc, "saying where this rank is"));
    ++joined_[client];
  }
  return {this, [self = shared_from_this(), client](void*) { self->leave(client); }};
}

// Where that cannot be said now, the rank may be shut out with a process that it has nothing to do with any more.
void joined_clients::leave(const std::string& client) noexcept {
  if (::getpid() != process_) return;
  try {
    const lock_guard lock(mutex_);
    if (--joined_[client] != 0) return;
    joined_.erase(client);
    const std::string name = rank_attribute(number_);
    (void)result_of([&](rados_pool::end ended) {
      pool_->write(
          client_object(client), 0, "the change of object '" + client_object(client) + "'",
          [&](rados_write_op_t op) {
            pool_->calls().write_op_assert_exists(op);
            pool_->calls().write_op_rmxattr(op, name.c_str());
          },
          std::move(ended));
    });
  } catch (const std::exception&) {
    // As above.
  }
}

}  // namespace ooc::storage
