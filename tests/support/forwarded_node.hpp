// An I/O node that passes everything on to another one: the base of those with something of their own.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::testing {

class forwarded_node : public storage::io_service {
 public:
  explicit forwarded_node(std::shared_ptr<storage::io_service> inner) : inner_(std::move(inner)) {}

  void answer(storage::node_call call, storage::completion done) override {
    inner_->answer(std::move(call), std::move(done));
  }
  storage::known_epoch epoch_of(const storage::file_shape& f) const override { return inner_->epoch_of(f); }
  void synced_elsewhere(const storage::file_shape& f, std::uint64_t before) override {
    inner_->synced_elsewhere(f, before);
  }
  std::string name() const override { return inner_->name(); }
  io_stats stats() const override { return inner_->stats(); }
  std::uint64_t staging_bytes() const override { return inner_->staging_bytes(); }

 private:
  std::shared_ptr<storage::io_service> inner_;
};

}  // namespace ooc::testing
