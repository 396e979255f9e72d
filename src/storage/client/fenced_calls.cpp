#include "storage/client/fenced_calls.hpp"

#include <algorithm>

namespace ooc::storage {

namespace {

bool changes_something(const remote_call& c) {
  switch (c.kind) {
    case wire::frame_kind::write:
    case wire::frame_kind::create:
    case wire::frame_kind::resize:
    case wire::frame_kind::remove:
    case wire::frame_kind::advance:
    case wire::frame_kind::prepare:
    case wire::frame_kind::roll_back:
    case wire::frame_kind::trim: return true;
    default: return false;
  }
}

}  // namespace

fenced_calls::connections fenced_calls::begin_fence() {
  if (fencing_) return {};
  connections all(given_up_.begin(), given_up_.end());
  for (const auto& [call, connection] : waiting_) all.push_back(connection);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  fencing_ = !all.empty();
  return all;
}

std::vector<call_ptr> fenced_calls::end_fence(const connections& fenced, bool confirmed) {
  fencing_ = false;
  std::vector<call_ptr> again;
  if (!confirmed) return again;
  for (const std::uint64_t connection : fenced) given_up_.erase(connection);
  std::erase_if(waiting_, [&](const auto& lost) {
    if (!std::binary_search(fenced.begin(), fenced.end(), lost.second)) return false;
    if (!lost.first->answered) again.push_back(lost.first);
    return true;
  });
  return again;
}

void fenced_calls::forget_answered() {
  std::erase_if(waiting_, [&](const auto& lost) {
    if (!lost.first->answered) return false;
    if (changes_something(*lost.first)) given_up_.insert(lost.second);
    return true;
  });
}

}  // namespace ooc::storage
