#include "storage/store/lost_node.hpp"

#include <cerrno>
#include <string>
#include <utility>

namespace ooc::storage {

namespace {

class lost_node final : public io_service {
 public:
  explicit lost_node(std::filesystem::path folder) : name_(folder.string()) {}

  void answer(node_call call, completion done) override {
    if (call.kind == io_kind::find_locality || call.kind == io_kind::permit) return done({});
    if (call.kind == io_kind::list) return done(failure_of("its list of stripe objects is gone"));
    done(failure_of(name_of(call.kind) + " of '" + call.file->name + "', a part of which was there"));
  }
  std::string name() const override { return name_; }
  io_stats stats() const override { return {}; }
  std::uint64_t staging_bytes() const override { return 0; }

 private:
  failure failure_of(const std::string& what) const {
    return {{ENXIO, std::generic_category()},
            "folder '" + name_ + "' is given up as lost (?lost= in the store's URL): " + what};
  }

  const std::string name_;
};

}  // namespace

std::shared_ptr<io_service> make_lost_node(std::filesystem::path folder) {
  return std::make_shared<lost_node>(std::move(folder));
}

}  // namespace ooc::storage
