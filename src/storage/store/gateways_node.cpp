#include "storage/store/gateways_node.hpp"

#include <utility>

#include "storage/service/gateways.hpp"

namespace ooc::storage {

namespace {

class gateways_node final : public io_service {
 public:
  explicit gateways_node(std::vector<std::shared_ptr<io_service>> all) : all_(std::move(all)) {}

  std::string name() const override {
    return "gateways " + all_.front()->name() +
           (all_.size() > 1 ? " and " + std::to_string(all_.size() - 1) + " more" : "");
  }
  io_stats stats() const override {
    io_stats sum;
    for (const auto& g : all_) sum += g->stats();
    return sum;
  }
  std::uint64_t staging_bytes() const override {
    std::uint64_t sum = 0;
    for (const auto& g : all_) sum += g->staging_bytes();
    return sum;
  }
  /// What concerns no file any of them can say.
  void answer(node_call call, completion done) override {
    const std::uint32_t which = call.file ? gateway_of(call.file->id, static_cast<std::uint32_t>(all_.size())) : 0;
    all_[which]->answer(std::move(call), std::move(done));
  }

 private:
  const std::vector<std::shared_ptr<io_service>> all_;
};

}  // namespace

bool is_in_rados(const store_core& store) {
  return store.url().starts_with("rados:") ||
         dynamic_cast<const gateways_node*>(store.nodes().front().get()) != nullptr;
}

std::shared_ptr<io_service> make_gateways_node(std::vector<std::shared_ptr<io_service>> gateways) {
  return std::make_shared<gateways_node>(std::move(gateways));
}

}  // namespace ooc::storage
