// The same outcome on every rank; see oocarray/process_group.hpp.

#include "oocarray/process_group.hpp"

#include <exception>
#include <new>

#include "oocarray/error.hpp"
#include "storage/base/packed.hpp"

namespace ooc {
namespace {

/// The classes of exceptions that travel between ranks; others arrive as `io`.
enum class thrown : std::uint64_t { nothing, usage, integrity, io, memory };
enum class category : std::uint64_t { library, generic };

process_group::bytes packed(thrown kind, const std::error_code& code, std::string text) {
  // std::system_error appends the code's message itself.
  if (const std::string tail = ": " + code.message(); text.ends_with(tail))
    text.resize(text.size() - tail.size());
  storage::packer p;
  const bool ours = code.category() == error_category();
  p.number(static_cast<std::uint64_t>(kind))
      .number(static_cast<std::uint64_t>(ours ? category::library : category::generic))
      .number(static_cast<std::uint64_t>(code.value()))
      .text(text);
  return p.take();
}

/// What f returned, or threw.
process_group::bytes outcome_of(const std::function<process_group::bytes()>& f) {
  try {
    return storage::packer().number(static_cast<std::uint64_t>(thrown::nothing)).bytes(f()).take();
  } catch (const usage_error& e) {
    return packed(thrown::usage, e.code(), e.what());
  } catch (const integrity_error& e) {
    return packed(thrown::integrity, e.code(), e.what());
  } catch (const std::system_error& e) {
    return packed(thrown::io, e.code(), e.what());
  } catch (const std::bad_alloc& e) {
    return packed(thrown::memory, std::make_error_code(std::errc::not_enough_memory), e.what());
  } catch (const std::exception& e) {
    return packed(thrown::io, std::make_error_code(std::errc::io_error), e.what());
  }
}

[[noreturn]] void rethrow(thrown kind, storage::unpacker u, const std::string& who) {
  const bool ours = static_cast<category>(u.number()) == category::library;
  const std::error_code code(static_cast<int>(u.number()),
                             ours ? error_category() : std::generic_category());
  const std::string what = who + u.text();
  switch (kind) {
    case thrown::usage:
      throw usage_error(code, what);
    case thrown::integrity:
      throw integrity_error(code, what);
    case thrown::memory:
      throw std::bad_alloc();
    case thrown::nothing:
    case thrown::io:
      break;
  }
  throw io_error(code, what);
}

}  // namespace

std::vector<process_group::bytes> process_group::together(std::string_view call,
                                                          const std::function<bytes()>& f) {
  std::vector<bytes> results;
  for (const bytes& outcome : all_gather(call, outcome_of(f))) {
    storage::unpacker u(outcome);
    const auto kind = static_cast<thrown>(u.number());
    if (kind != thrown::nothing)
      rethrow(kind, u, size() == 1 ? "" : "rank " + std::to_string(results.size()) + ": ");
    const std::span<const std::byte> result = u.bytes();
    results.emplace_back(result.begin(), result.end());
  }
  return results;
}

}  // namespace ooc
