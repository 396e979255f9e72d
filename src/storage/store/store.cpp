#include "oocarray/store.hpp"

#include <utility>

#include "oocarray/error.hpp"
#include "storage/service/store_core.hpp"
#include "storage/store/local_store.hpp"
#include "storage/store/remote_store.hpp"
#include "storage/store/store_url.hpp"

namespace ooc {

store store::open(std::string_view url, const store_options& options) {
  const storage::store_url parsed = storage::parse_store_url(url);
  if (parsed.scheme == "local") return store(storage::open_local_store(parsed, options));
  if (parsed.scheme == "ooc") return store(storage::open_remote_store(parsed, options));
  throw usage_error(errc::not_a_store,
                    "store '" + std::string(url) + "': scheme '" + parsed.scheme +
                        "' is unknown; write local:FOLDER[,FOLDER...] or ooc://HOST[:PORT]");
}

std::string store::url() const {
  return core_->url();
}

std::string store::uuid() const {
  return core_->uuid();
}

std::uint32_t store::nodes() const noexcept {
  return static_cast<std::uint32_t>(core_->nodes().size());
}

std::vector<std::uint32_t> store::near_nodes() const {
  return core_->near_nodes();
}

io_stats store::stats() const {
  io_stats sum;
  for (const io_stats& s : node_stats()) sum += s;
  return sum;
}

std::vector<io_stats> store::node_stats() const {
  std::vector<io_stats> all;
  for (const auto& n : core_->nodes()) all.push_back(n->stats());
  return all;
}

}  // namespace ooc
