// An I/O node whose reads are done at once and answered late: what a program sees of a slow
// network.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "storage/io_service.hpp"

namespace ooc::testing {

/// Thread-safe.  Answers still held at the end are given then.
class late_reads final : public storage::io_service {
 public:
  explicit late_reads(std::shared_ptr<storage::io_service> inner) : inner_(std::move(inner)) {}
  ~late_reads() override { release(); }

  /// Holds the answers of reads that end from now on.
  void hold() {
    const std::lock_guard lock(mutex_);
    holding_ = true;
  }
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  /// Gives the answers that are held, and those to come at once.
  void release() {
    std::vector<std::function<void()>> answers;
    {
      const std::lock_guard lock(mutex_);
      holding_ = false;
      answers.swap(held_);
    }
    for (const auto& answer : answers) answer();
  }

  void read(storage::shape_ptr file, std::uint32_t turn, storage::request_ptr r, std::byte* memory,
            storage::completion done) override {
    inner_->read(std::move(file), turn, std::move(r), memory,
                 [this, done = std::move(done)](const failure& f) {
                   {
                     const std::lock_guard lock(mutex_);
                     if (holding_) {
                       held_.push_back([done, f] { done(f); });
                       return;
                     }
                   }
                   done(f);
                 });
  }
  void write(storage::shape_ptr file, std::uint32_t turn, storage::request_ptr r,
             const std::byte* memory, storage::completion done) override {
    inner_->write(std::move(file), turn, std::move(r), memory, std::move(done));
  }
  void create(storage::shape_ptr file, std::uint32_t turn, storage::completion done) override {
    inner_->create(std::move(file), turn, std::move(done));
  }
  void resize(storage::shape_ptr file, std::uint32_t turn, std::uint64_t old_size,
              storage::completion done) override {
    inner_->resize(std::move(file), turn, old_size, std::move(done));
  }
  void remove(storage::shape_ptr file, storage::completion done) override {
    inner_->remove(std::move(file), std::move(done));
  }
  void sync(storage::shape_ptr file, std::uint32_t turn, storage::completion done) override {
    inner_->sync(std::move(file), turn, std::move(done));
  }
  void verify(storage::shape_ptr file, std::uint32_t turn,
              std::function<void(const failure&, storage::verify_report)> done) override {
    inner_->verify(std::move(file), turn, std::move(done));
  }
  void list(std::function<void(const failure&, std::vector<storage::file_id>)> done) override {
    inner_->list(std::move(done));
  }
  std::string name() const override { return inner_->name(); }
  io_stats stats() const override { return inner_->stats(); }
  std::uint64_t staging_bytes() const override { return inner_->staging_bytes(); }

 private:
  std::shared_ptr<storage::io_service> inner_;
  mutable std::mutex mutex_;
  bool holding_ = false;
  std::vector<std::function<void()>> held_;
};

}  // namespace ooc::testing
