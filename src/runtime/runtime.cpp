#include "oocarray/runtime.hpp"

#include "runtime/fault_handler.hpp"
#include "runtime/pager.hpp"

namespace ooc {

runtime::runtime(const runtime_options& options)
    : pager_(std::make_unique<detail::pager>(options)) {}

runtime::~runtime() {
  if (detail::fault_handler::in_forked_child()) pager_.release();  // its threads are the parent's
}

runtime_stats runtime::stats() const {
  return pager_->stats();
}
std::uint64_t runtime::memory() const noexcept {
  return pager_->budget();
}

}  // namespace ooc
