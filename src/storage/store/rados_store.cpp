#include "storage/store/rados_store.hpp"

#include <unistd.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/mutex.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_database.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/store/remote_store.hpp"

namespace ooc::storage {

namespace {

/// RADOS takes 20 s to see that an OSD is gone, and 30 s that who had the metadata is.
constexpr std::chrono::milliseconds usual_deadline_of_rados{90'000};

/// The database of a store, which this process has until the pointer goes.
class possessed_metadata final : public local_metadata {
 public:
  possessed_metadata(const rados_possession& p, credentials who)
      : local_metadata(p.database(), p.store().uuid, std::move(who), sqlite::open_as::alone) {}

  std::shared_ptr<rados_possession> possession;
};

std::shared_ptr<store_core> open_alone(const std::shared_ptr<rados_pool>& pool, const std::string& data, bool create) {
  std::shared_ptr<possessed_metadata> metadata;
  const credentials who{::geteuid(), ::getegid(), further_groups()};
  const auto mine =
      rados_possession::take(pool, {data, create, rados_possession::after_death}, [&](const rados_possession& p) {
        make_metadata_database(p.database(), p.store().uuid, who, 0755, sqlite::open_as::alone);
        metadata = std::make_shared<possessed_metadata>(p, who);
      });
  metadata->possession = mine;
  auto core = std::make_shared<store_core>(pool->where().name(), mine->store().uuid, std::move(metadata),
                                           striped_file::nodes{make_rados_node(pool->other_pool(mine->store().data))},
                                           std::random_device{}());
  core->sweep();
  return core;
}

std::shared_ptr<store_core> open_beside_others(const std::shared_ptr<rados_pool>& pool, const rados_description& d,
                                               const store_options& options) {
  remote_metadata_options m;
  m.client = this_client(options);
  m.deadline = pool->where().deadline;
  m.store_uuid = d.uuid;
  m.lookup = [pool] {
    const auto addresses = find_rados_server(*pool);
    if (addresses.empty())
      throw io_error({ENXIO, std::generic_category()},
                     "store '" + pool->where().name() + "': no metadata server has its metadata now");
    return addresses.front();
  };
  m.address = m.lookup();
  introduce_client(*pool, uuid_text(m.client.id));
  auto metadata = std::make_shared<remote_metadata>(m);
  const std::uint64_t number = metadata->cluster().asker;
  auto core = std::make_shared<store_core>(pool->where().name(), d.uuid, std::move(metadata),
                                           striped_file::nodes{make_rados_node(pool->other_pool(d.data))}, number);
  core->sweep();
  return core;
}

}  // namespace

std::shared_ptr<store_core> open_rados_store(const store_url& url, const store_options& options) {
  static mutex one_at_a_time;
  static std::map<std::string, std::weak_ptr<store_core>> open_ones;  // of this process, and of one that has forked it
  rados_url parsed = parse_rados_url(url.rest);
  parsed.where.deadline = deadline_of(url, parsed.deadline, options.deadline, usual_deadline_of_rados);
  const rados_location& where = parsed.where;
  const std::string key = where.conf + '\n' + where.user + '\n' + where.name() + '\n' + std::to_string(::getpid());
  const lock_guard lock(one_at_a_time);
  if (auto open = open_ones[key].lock()) return open;
  const auto pool = rados_pool::connect(where);
  // Who had the metadata may have died, and nobody have them now.
  const auto is_served = [&] { return !find_rados_server(*pool).empty() && has_rados_metadata(*pool); };
  const auto beside_others = [&] { return open_beside_others(pool, find_description(*pool).value(), options); };
  if (is_served()) return beside_others();
  std::shared_ptr<store_core> core;
  try {
    core = open_alone(pool, parsed.data, options.create);
  } catch (const usage_error& e) {
    if (e.code() != errc::busy || !is_served()) throw;
    return beside_others();  // a server has come first
  }
  open_ones[key] = core;
  return core;
}

}  // namespace ooc::storage
