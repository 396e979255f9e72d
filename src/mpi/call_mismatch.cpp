#include "mpi/call_mismatch.hpp"

#include <algorithm>

namespace ooc::mpi {
namespace {

/// FNV-1a.
std::uint64_t hash_of(std::string_view text, std::uint64_t h) {
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

std::string list_of_ranks(const std::vector<int>& ranks) {
  std::string list;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!list.empty()) list += ", ";
    list += std::to_string(ranks[i]);
    if (last > i) list += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return list;
}

call_header::call_header(std::string_view operation, std::string_view call, std::uint64_t n)
    : hash(hash_of(call, hash_of(operation, 0xcbf29ce484222325u))), payload(n) {
  std::copy_n(call.data(), std::min(call.size(), text.size() - 1), text.data());
}

call_header::call_header(std::string_view operation, std::string_view call, std::span<const std::byte> brought)
    : call_header(operation, call, brought.size()) {
  if (payload_fits()) std::copy(brought.begin(), brought.end(), bytes.begin());
}

std::string difference(const std::vector<call_header>& calls) {
  const auto same_as_first = [&](const call_header& c) { return c.same_call(calls.front()); };
  if (std::all_of(calls.begin(), calls.end(), same_as_first)) return {};
  std::string what = "the ranks do not call the same:";
  std::vector<bool> told(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (told[i]) continue;
    std::vector<int> ranks;
    for (std::size_t k = i; k < calls.size(); ++k)
      if (calls[k].same_call(calls[i])) {
        ranks.push_back(static_cast<int>(k));
        told[k] = true;
      }
    what += (i ? "; rank " : " rank ") + list_of_ranks(ranks) + ": " + calls[i].text.data();
  }
  return what;
}

}  // namespace ooc::mpi
