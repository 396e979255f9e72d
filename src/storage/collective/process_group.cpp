// The same outcome on every rank; see oocarray/process_group.hpp.

#include "oocarray/process_group.hpp"

#include <cxxabi.h>

#include <exception>
#include <new>
#include <string>

#include "oocarray/error.hpp"
#include "storage/collective/together.hpp"
#include "storage/wire/metadata_messages.hpp"
#include "storage/wire/ranks.pb.h"

namespace ooc::storage {
namespace {

using wire::pb::RankOutcome;

/// The result of f, or the exception that it threw.
std::string outcome_of(const std::function<process_group::bytes()>& f, std::size_t most) {
  RankOutcome m;
  try {
    const process_group::bytes result = f();
    if (result.size() > most)  // protobuf would make it an empty message, which is one of an empty result
      throw usage_error(errc::invalid_request, "a rank has " + std::to_string(result.size()) +
                                                   " bytes to tell the others at once, and can tell them " +
                                                   std::to_string(most));
    m.set_result(result.data(), result.size());
  } catch (const std::exception& e) {
    wire::write_failure(e, *m.mutable_failure());
    m.set_integrity(dynamic_cast<const integrity_error*>(&e) != nullptr);
    m.set_out_of_memory(dynamic_cast<const std::bad_alloc*>(&e) != nullptr);
#ifdef __GLIBCXX__
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is cancelled
#endif
  } catch (...) {  // the others must not wait for this rank
    wire::write_failure(failure{std::make_error_code(std::errc::io_error), "what was thrown is no std::exception"},
                        *m.mutable_failure());
  }
  return m.SerializeAsString();
}

[[noreturn]] void rethrow(const RankOutcome& m, const std::string& who) {
  if (m.out_of_memory()) throw std::bad_alloc();
  const failure f = wire::read_failure(m.failure());
  if (m.failure().usage()) throw usage_error(f.code, who + f.what);
  if (m.integrity()) throw integrity_error(f.code, who + f.what);
  throw io_error::in_full(f.code, who + f.what);
}

}  // namespace

std::vector<process_group::bytes> together(process_group& group, std::string_view call,
                                           const std::function<process_group::bytes()>& f, std::size_t most) {
  const std::string mine = outcome_of(f, most);
  std::vector<process_group::bytes> results;
  for (const process_group::bytes& outcome : group.all_gather(call, std::as_bytes(std::span(mine)))) {
    const std::string who = "rank " + std::to_string(results.size()) + ": ";
    RankOutcome m;
    if (!m.ParseFromArray(outcome.data(), static_cast<int>(outcome.size())))
      throw integrity_error(errc::corrupt, who + "a message between ranks cannot be read");
    if (m.has_failure()) rethrow(m, group.size() == 1 ? "" : who);
    const auto result = std::as_bytes(std::span(m.result()));
    results.emplace_back(result.begin(), result.end());
  }
  return results;
}

}  // namespace ooc::storage

namespace ooc {

std::vector<process_group::bytes> process_group::together(std::string_view call, const std::function<bytes()>& f) {
  return storage::together(*this, call, f);
}

}  // namespace ooc
