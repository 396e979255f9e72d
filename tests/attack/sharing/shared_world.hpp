// Which programs there are, which files, and who has which one open: as far as is known, everything of a round of
// `shared_files`.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attack/sharing/shared_content.hpp"
#include "attack/sharing/sharing_program.hpp"

namespace ooc::attack {

struct shared_file {
  std::uint64_t id = no_file;
  std::vector<std::byte> fill;
  ooc::striping striping;
  shared_content content;
  touched_chunks torn{{}, {}};  ///< what may be refused as torn, until it has been read or written as a whole
  bool removed = false;         ///< who has it open may go on for a while
  bool unknown = false;         ///< removed, and a call has failed since
  /// Until then a program that was killed may count as one that reserves space.
  std::chrono::steady_clock::time_point claimed_by_dead{};
};
using file_ptr = std::shared_ptr<shared_file>;

/// A file that a program has open.
struct handle {
  file_ptr file;
  bool read_only = false;
  std::uint64_t position = 0;
  unsigned growths = 0;          ///< of this opening, by writes; from the second one on it reserves space
  unsigned growths_perhaps = 0;  ///< the same with those that another call may have spared it
};

/// A call of a program, and what became of it.
struct deed {
  std::size_t program = 0;
  order o;
  file_ptr file;              ///< as it was known before
  std::vector<extent> where;  ///< what it reads or writes, in the order of its bytes
  bool grows = false;         ///< a write past what was the end when it was told
  answer a;
  bool killed = false;     ///< its program, during the call or after it
  bool cut_short = false;  ///< killed before it had answered

  bool done() const noexcept { return a.ok && !cut_short; }
};
std::string text_of(const deed& d);
[[noreturn]] void fail(const deed& d);

struct shared_world {
  round& r;
  std::uint64_t most;   ///< bytes of a file
  std::uint32_t nodes;  ///< of the store
  std::uint64_t files;  ///< names that are in use
  std::string url;
  std::vector<std::unique_ptr<sharing_program>> programs{};
  std::vector<std::array<handle, most_files>> handles{};  ///< of each program
  std::array<file_ptr, most_files> names{};
  /// Until then the name may count as one of a file that is just being made, by a program that was killed.
  std::array<std::chrono::steady_clock::time_point, most_files> made_by_dead{};
  std::chrono::seconds forgotten_after{0};  ///< how long a program that was killed may count as one that may come back
  write_number last_number = 0;

  program_board& board(std::size_t p) const { return programs[p]->board(); }
  /// The slot in which the name of the file is; it has one.
  std::uint32_t slot_of(const file_ptr& f) const;
  deed call(std::size_t p, action what, std::uint32_t slot) const;
  /// Writes the call down and tells it.
  void tell(deed& d) const;
  /// Waits for the answer, too.
  void ask(deed& d) const;
  /// The same of a call that must not fail.
  void must(deed& d) const;
};

}  // namespace ooc::attack
