#include "storage/store/absent_node.hpp"

#include <cerrno>
#include <utility>

namespace ooc::storage {

namespace {

class absent_node : public io_service {
 public:
  absent_node(std::string name, std::string why) : name_(std::move(name)), why_(std::move(why)) {}

  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::permit) return done({});
    if (call.kind == io_kind::find_locality) {
      call.answer->distance = locality::network;
      return done({});
    }
    if (call.kind == io_kind::list) return done(failure_of("its list of stripe objects is gone"));
    done(failure_of(name_of(call.kind) + " of '" + call.file->name + "', a part of which was there"));
  }
  std::string name() const override { return name_; }
  io_stats stats() const override { return {}; }
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  failure failure_of(const std::string& what) const { return {{ENXIO, std::generic_category()}, why_ + ": " + what}; }

  const std::string name_, why_;
};

class retired_node final : public absent_node {
 public:
  explicit retired_node(const std::string& name) : absent_node(name, name + " was emptied, and is retired") {}

  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::list) return done({});
    if (call.kind == io_kind::remove) return done({{ENOENT, std::generic_category()}, "nothing is there"});
    absent_node::answer(std::move(call), std::move(done));
  }
};

}  // namespace

std::shared_ptr<io_service> make_lost_node(const std::filesystem::path& folder) {
  return std::make_shared<absent_node>(
      folder.string(), "folder '" + folder.string() + "' is given up as lost (?lost= in the store's URL)");
}

std::shared_ptr<io_service> make_retired_node(std::string name) {
  return std::make_shared<retired_node>(std::move(name));
}

}  // namespace ooc::storage
