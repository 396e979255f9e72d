#include <string_view>
#include <utility>

#include "iod/iod_home.hpp"
#include "oocarray/error.hpp"
#include "storage/base/refuse.hpp"
#include "storage/rados/gateway_node.hpp"
#include "storage/rados/rados_url.hpp"
#include "storage/service/gateways.hpp"

namespace ooc::iod {

namespace {

class gateway_home final : public iod_home {
 public:
  gateway_home(std::shared_ptr<storage::gateway_node> node, std::uint32_t number)
      : node_(std::move(node)), number_(number) {}

  std::shared_ptr<storage::served_node> node() const override { return node_; }
  std::string uuid() const override { return storage::gateway_uuid(number_); }
  const std::string& store_uuid() const override { return node_->store_uuid(); }
  const wire::capability_public_key* capability_key() const override { return nullptr; }

  void join(const std::string& store_uuid, const wire::capability_public_key&, std::uint32_t nodes) override {
    if (store_uuid != node_->store_uuid())
      refuse(errc::not_a_store, node_->name() + ", is of store " + node_->store_uuid() +
                                    ", and the metadata server has store " + store_uuid + ": check --metad");
    node_->set_gateways(nodes);
  }

 private:
  const std::shared_ptr<storage::gateway_node> node_;
  const std::uint32_t number_;
};

}  // namespace

std::unique_ptr<iod_home> open_gateway(const std::string& url, std::uint32_t number,
                                       std::function<void(const std::string& why)> lost) {
  const auto parsed = storage::parse_rados_url("--backend", url);
  return std::make_unique<gateway_home>(
      storage::make_gateway_node(storage::rados_pool::connect(parsed.where), number, std::move(lost)), number);
}

}  // namespace ooc::iod
