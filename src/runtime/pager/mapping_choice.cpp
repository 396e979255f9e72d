#include "runtime/pager/mapping_choice.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/blocks/grain_mapping.hpp"
#include "runtime/blocks/userfault_mapping.hpp"

namespace ooc::detail {

namespace {

mapping_way way_asked_for(const runtime_options& o) {
  if (o.mapping != mapping_way::automatic) return o.mapping;
  const char* const named = std::getenv("OOC_MAPPING");
  const std::string_view name = named ? named : "";
  if (name.empty() || name == "automatic") return mapping_way::automatic;
  if (name == "signal") return mapping_way::signal;
  if (name == "userfaultfd") return mapping_way::userfaultfd;
  throw usage_error(errc::invalid_request,
                    "OOC_MAPPING is '" + std::string(name) + "': it may be signal, userfaultfd or automatic");
}

bool grains_asked_for(const runtime_options& o) {
  const char* const named = std::getenv("OOC_GRAINS");
  const std::string_view name = named ? named : "";
  if (!name.empty() && name != "on" && name != "off")
    throw usage_error(errc::invalid_request, "OOC_GRAINS is '" + std::string(name) + "': it may be on or off");
  return o.grains && name != "off";
}

}  // namespace

// docs/decisions/0019-userfaultfd.md says why signals are the default.
block_mappings make_mappings(const runtime_options& o) {
  std::string why_not;
  if (way_asked_for(o) != mapping_way::userfaultfd) {
    auto grains = grains_asked_for(o) ? grain_mapping::open(o.memory, why_not) : nullptr;
    grain_mapping* const for_grains = grains.get();
    return {make_signal_mapping(for_grains), std::move(grains), for_grains};
  }
  auto m = userfault_mapping::open(why_not);
  if (!m)
    throw usage_error(errc::invalid_request, "mapping by userfaultfd was asked for, and " + why_not +
                                                 "; ask for mapping_way::signal (OOC_MAPPING=signal)");
  block_mapping* const blocks = m.get();
  return {std::move(m), nullptr, grains_asked_for(o) ? blocks : nullptr};
}

namespace {

std::string describe_ways() {
  std::string why_not;
  const auto m = userfault_mapping::open(why_not);
  const std::string without = "system calls need pinned elements";
  const bool asked = way_asked_for({}) == mapping_way::userfaultfd;
  if (!m) return (asked ? "none" : "signal, " + without) + "; userfaultfd is not to be had: " + why_not;
  const std::string by_userfaultfd = m->serves_system_calls()
                                         ? "system calls may touch all elements"
                                         : without + ", as the process may not have the kernel's faults";
  if (asked) return "userfaultfd, " + by_userfaultfd;
  return "signal, " + without + "; with OOC_MAPPING=userfaultfd: " + by_userfaultfd;
}

std::string describe_grains() {
  if (!grains_asked_for({})) return "blocks come whole (OOC_GRAINS=off)";
  std::string why_not;
  if (way_asked_for({}) == mapping_way::userfaultfd || grain_mapping::open(0, why_not))
    return "touches that belong to no sweep bring in 4 KiB";
  return "blocks come whole, as " + why_not;
}

}  // namespace

std::string describe_mapping() { return describe_ways() + "; " + describe_grains(); }

}  // namespace ooc::detail
