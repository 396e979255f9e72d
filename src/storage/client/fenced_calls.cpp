#include "storage/client/fenced_calls.hpp"

#include <algorithm>

namespace ooc::storage {

fenced_calls::connections fenced_calls::begin_fence() {
  if (fencing_) return {};
  connections all;
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
  std::erase_if(waiting_, [&](const auto& lost) {
    if (!std::binary_search(fenced.begin(), fenced.end(), lost.second)) return false;
    if (!lost.first->answered) again.push_back(lost.first);
    return true;
  });
  return again;
}

void fenced_calls::forget_answered() {
  std::erase_if(waiting_, [](const auto& lost) { return lost.first->answered; });
}

}  // namespace ooc::storage
