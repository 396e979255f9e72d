#include "storage/store/local_store.hpp"

#include <unistd.h>

#include <random>

#include "storage/namespace/local_metadata.hpp"
#include "storage/namespace/metadata_schema.hpp"
#include "storage/node/local_node.hpp"
#include "storage/store/store_folders.hpp"

namespace ooc::storage {

namespace {

/// Enough requests in flight to keep a disk busy, without a crowd of threads on many nodes.
unsigned default_workers(std::size_t nodes) {
  return nodes == 1 ? 6 : nodes <= 4 ? 4 : 2;
}

void check(const store_options& o) {
  constexpr std::uint64_t unit = 64_KiB;
  if (o.staging == 0 || o.staging % unit != 0)
    throw usage_error(errc::invalid_request, "store_options::staging is " +
                                                 std::to_string(o.staging) +
                                                 " bytes; give a multiple of 64 KiB");
  if (o.workers > 256)
    throw usage_error(errc::invalid_request, "store_options::workers is " +
                                                 std::to_string(o.workers) + "; give at most 256");
}

}  // namespace

std::shared_ptr<store_core> open_local_store(const store_url& url, const store_options& options) {
  check(options);
  const credentials who{::geteuid(), ::getegid()};
  const auto folders = local_folders(url);
  const std::string uuid = open_store_folders(folders, options.create, who);
  auto metadata = std::make_shared<local_metadata>(folders[0] / metadata_file_name, uuid, who);

  local_node_options node;
  node.workers = options.workers != 0 ? options.workers : default_workers(folders.size());
  node.staging = options.staging;
  node.direct_io = options.direct_io;
  node.io_uring = options.io_uring;
  node.store = uuid;
  striped_file::nodes nodes;
  for (const auto& f : folders) nodes.push_back(open_local_node(f, node));

  auto core =
      std::make_shared<store_core>(local_url(folders), uuid, std::move(metadata), std::move(nodes),
                                   std::random_device{}());
  core->sweep();
  return core;
}

}  // namespace ooc::storage
