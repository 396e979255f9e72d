#include "oocarray/runtime.hpp"

#include <array>
#include <bit>

#include "oocarray/process_group.hpp"
#include "runtime/pager/fault_handler.hpp"
#include "runtime/pager/pager.hpp"
#include "runtime/pager/process_end.hpp"

namespace ooc {

runtime::runtime(const runtime_options& options)
    : pager_(std::make_unique<detail::pager>(options)), end_(std::make_unique<detail::process_end>(*pager_, options)) {}

runtime::~runtime() {
  if (detail::fault_handler::in_forked_child()) {  // their threads are the parent's
    end_.release();
    pager_.release();
  } else {
    pager_->end_owners();
  }
}

runtime_stats runtime::stats() const { return pager_->report().stats(); }
runtime_stats runtime::stats(process_group& group) const {
  using counts = std::array<std::uint64_t, sizeof(runtime_stats) / sizeof(std::uint64_t)>;
  auto all = std::bit_cast<counts>(stats());
  group.all_reduce("runtime::stats()", all, reduction::sum);
  return std::bit_cast<runtime_stats>(all);
}

std::string runtime::report() const { return pager_->report().text(); }

std::uint64_t runtime::memory() const noexcept { return pager_->budget(); }

void runtime::reclaim_faults() const { detail::fault_handler::reclaim(); }

}  // namespace ooc
