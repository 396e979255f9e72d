// What an I/O server is in front of, and what it knows from before about the store: a folder (iod_folder), or a place
// among the gateways of a store in RADOS (gateway_home).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "storage/service/served_node.hpp"
#include "storage/wire/capability.hpp"
#include "storage/wire/revocations.hpp"

namespace ooc::iod {

class iod_home {
 public:
  virtual ~iod_home() = default;

  /// Null: that of the folder, which the server opens.
  virtual std::shared_ptr<storage::served_node> node() const { return nullptr; }
  /// Its identity, which no other node of the store has.
  virtual std::string uuid() const = 0;
  /// Empty: it does not belong to a store yet.
  virtual const std::string& store_uuid() const = 0;
  /// Null: it waits for the metadata server to tell it.
  virtual const wire::capability_public_key* capability_key() const = 0;

  /// The metadata server has told which store it is, and how many nodes that has.  Throws usage_error
  /// (errc::not_a_store) where it is another store.
  virtual void join(const std::string& store_uuid, const wire::capability_public_key& key, std::uint32_t nodes) = 0;

  /// As folder_epoch; 0: what is acknowledged there is durable.
  virtual std::uint64_t epoch() const { return 0; }

  /// Keys that are refused, as remembered.
  virtual wire::revocations revoked() const { return {}; }
  /// Remembers them, durably, if it remembers anything.  Throws io_error.
  virtual void remember(const wire::revocations&) const {}
};

/// Gateway `number` of the store at `url` ("rados:POOL/NAMESPACE"), which remembers nothing: all is in RADOS.  `lost`:
/// see storage::make_gateway_node().  Throws what that does, and usage_error where it is no such URL.
std::unique_ptr<iod_home> open_gateway(const std::string& url, std::uint32_t number,
                                       std::function<void(const std::string& why)> lost);

}  // namespace ooc::iod
