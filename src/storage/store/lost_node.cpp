#include "storage/store/lost_node.hpp"

#include <cerrno>
#include <string>
#include <utility>

namespace ooc::storage {

namespace {

class lost_node final : public io_service {
 public:
  explicit lost_node(std::filesystem::path folder) : name_(folder.string()) {}

  void read(shape_ptr file, std::uint32_t, request_ptr, std::byte*, completion done) override {
    done(lost("read", file));
  }
  void write(shape_ptr file, std::uint32_t, request_ptr, const std::byte*, completion done) override {
    done(lost("write", file));
  }
  void create(shape_ptr file, std::uint32_t, completion done) override { done(lost("creation", file)); }
  void resize(shape_ptr file, std::uint32_t, std::uint64_t, completion done) override {
    done(lost("change of size", file));
  }
  void remove(shape_ptr file, completion done) override { done(lost("removal", file)); }
  void advance(shape_ptr file, std::uint32_t, completion done) override { done(lost("opening for writing", file)); }
  void sync(shape_ptr file, std::uint32_t, completion done) override { done(lost("sync", file)); }
  void prepare(shape_ptr file, std::uint32_t, completion done) override { done(lost("commit", file)); }
  void roll_back(shape_ptr file, std::uint32_t, completion done) override { done(lost("rollback", file)); }
  void verify(shape_ptr file, std::uint32_t, std::function<void(const failure&, verify_report)> done) override {
    done(lost("verification", file), {});
  }
  void list(std::function<void(const failure&, std::vector<file_id>)> done) override {
    done(failure_of("its list of stripe objects is gone"), {});
  }
  void find_locality(std::function<void(const failure&, locality)> done) override { done({}, locality::none); }
  std::string name() const override { return name_; }
  io_stats stats() const override { return {}; }
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  failure failure_of(const std::string& what) const {
    return {{ENXIO, std::generic_category()},
            "folder '" + name_ + "' is given up as lost (?lost= in the store's URL): " + what};
  }
  failure lost(const char* doing, const shape_ptr& file) const {
    return failure_of(std::string(doing) + " of '" + file->name + "', a part of which was there");
  }

  const std::string name_;
};

}  // namespace

std::shared_ptr<io_service> make_lost_node(std::filesystem::path folder) {
  return std::make_shared<lost_node>(std::move(folder));
}

}  // namespace ooc::storage
