#include "storage/store/rados_store.hpp"

#include <unistd.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "storage/base/durable_file.hpp"
#include "storage/base/file_access.hpp"
#include "storage/base/mutex.hpp"
#include "storage/base/refuse.hpp"
#include "storage/chunked/packed_file.hpp"
#include "storage/client/remote_metadata.hpp"
#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/rados/client_object.hpp"
#include "storage/rados/file_ranks.hpp"
#include "storage/rados/possession.hpp"
#include "storage/rados/rados_database.hpp"
#include "storage/rados/rados_node.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/service/removals.hpp"
#include "storage/store/remote_store.hpp"

namespace ooc::storage {

namespace {

/// RADOS takes 20 s to see that an OSD is gone, and 30 s that who had the metadata is.
constexpr std::chrono::milliseconds usual_deadline_of_rados{90'000};

[[noreturn]] void refuse_for_gateways(const rados_pool& pool) {
  const auto servers = find_rados_server(pool);
  refuse(errc::not_a_store, "store '" + pool.where().name() + "' is reached through gateways: open ooc://" +
                                (servers.empty() ? "HOST:PORT of its metadata server" : servers.front()) +
                                "; `ooc-metad --gateways 0` lets keys of Ceph open it again");
}

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
        if (find_gateways(*pool) != 0) refuse_for_gateways(*pool);
        make_metadata_database(p.database(), p.store().uuid, who, 0755, sqlite::open_as::alone);
        metadata = std::make_shared<possessed_metadata>(p, who);
      });
  metadata->possession = mine;
  auto core = std::make_shared<store_core>(pool->where().name(), mine->store().uuid, std::move(metadata),
                                           striped_file::nodes{make_rados_node(pool->other_pool(mine->store().data))},
                                           std::random_device{}(), unpacked_node);
  sweep(*core);
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
  // On each connection: what the server has lost while it held nothing is not known any more.
  const std::string number = uuid_text(m.client.id);
  m.introduce = [pool, number] {
    introduce_client(*pool, number);
    // Before that the server may have been given gateways, and not have shut this process out.
    if (find_gateways(*pool) != 0) refuse_for_gateways(*pool);
  };
  m.join = [me = rank_of_file{pool, pool->other_pool(d.data), number}](const std::string& claimant, file_id id,
                                                                       const write_claim& claim) {
    return join_file(me, claimant, id, claim);
  };
  auto metadata = std::make_shared<remote_metadata>(m);
  const cluster_info cluster = metadata->cluster();
  auto core = std::make_shared<store_core>(pool->where().name(), d.uuid, std::move(metadata),
                                           striped_file::nodes{make_rados_node(pool->other_pool(d.data))},
                                           cluster.asker, unpacked_node);
  sweep(*core);
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
  if (find_gateways(*pool) != 0) refuse_for_gateways(*pool);
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

std::string rados_server_address(const store_url& url) {
  const rados_url parsed = parse_rados_url(url.rest);
  const auto addresses = find_rados_server(*rados_pool::connect(parsed.where));
  if (addresses.empty())
    refuse(errc::not_a_store, "store '" + parsed.where.name() + "' has no servers to ask: no `ooc-metad --database " +
                                  parsed.where.name() + "` has its metadata");
  return addresses.front();
}

}  // namespace ooc::storage
