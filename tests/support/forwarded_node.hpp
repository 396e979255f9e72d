// An I/O node that passes everything on to another one: the base of those with something of their own.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "storage/service/io_service.hpp"

namespace ooc::testing {

class forwarded_node : public storage::io_service {
 public:
  explicit forwarded_node(std::shared_ptr<storage::io_service> inner) : inner_(std::move(inner)) {}

  void read(storage::shape_ptr file, std::uint32_t stripe_index, storage::request_ptr r, std::byte* memory,
            storage::completion done) override {
    inner_->read(std::move(file), stripe_index, std::move(r), memory, std::move(done));
  }
  void write(storage::shape_ptr file, std::uint32_t stripe_index, storage::request_ptr r, const std::byte* memory,
             storage::completion done) override {
    inner_->write(std::move(file), stripe_index, std::move(r), memory, std::move(done));
  }
  void create(storage::shape_ptr file, std::uint32_t stripe_index, storage::completion done) override {
    inner_->create(std::move(file), stripe_index, std::move(done));
  }
  void resize(storage::shape_ptr file, std::uint32_t stripe_index, std::uint64_t old_size,
              storage::completion done) override {
    inner_->resize(std::move(file), stripe_index, old_size, std::move(done));
  }
  void remove(storage::shape_ptr file, storage::completion done) override {
    inner_->remove(std::move(file), std::move(done));
  }
  void advance(storage::shape_ptr file, std::uint32_t stripe_index, storage::completion done) override {
    inner_->advance(std::move(file), stripe_index, std::move(done));
  }
  void sync(storage::shape_ptr file, std::uint32_t stripe_index, storage::completion done) override {
    inner_->sync(std::move(file), stripe_index, std::move(done));
  }
  void prepare(storage::shape_ptr file, std::uint32_t stripe_index, storage::completion done) override {
    inner_->prepare(std::move(file), stripe_index, std::move(done));
  }
  void roll_back(storage::shape_ptr file, std::uint32_t stripe_index, storage::completion done) override {
    inner_->roll_back(std::move(file), stripe_index, std::move(done));
  }
  void verify(storage::shape_ptr file, std::uint32_t stripe_index,
              std::function<void(const failure&, storage::verify_report)> done) override {
    inner_->verify(std::move(file), stripe_index, std::move(done));
  }
  void list(std::function<void(const failure&, std::vector<storage::file_id>)> done) override {
    inner_->list(std::move(done));
  }
  void find_locality(std::function<void(const failure&, storage::locality)> done) override {
    inner_->find_locality(std::move(done));
  }
  std::string name() const override { return inner_->name(); }
  io_stats stats() const override { return inner_->stats(); }
  std::uint64_t staging_bytes() const override { return inner_->staging_bytes(); }

 private:
  std::shared_ptr<storage::io_service> inner_;
};

}  // namespace ooc::testing
