// A program whose every write can be told by its value: what may be read after a crash follows.
//
// Array `history` of unsigned 64-bit elements.  In epoch e (1, 2, ...) the writer sets the elements
// of history::writes(e) to history::value(e, element), and calls writeback().  When that has
// returned it says so over a pipe.  The seed alone decides, so the checker, another process, knows
// which epochs wrote which element.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "attack/round.hpp"
#include "oocarray/store.hpp"

namespace ooc::attack {

class history {
 public:
  history(std::uint64_t seed, std::size_t elements, std::uint64_t epochs, bool with_durable);

  struct epoch {
    std::vector<std::uint32_t> elements;
    bool durable = false;
  };
  std::uint64_t epochs() const noexcept { return epochs_.size(); }
  const epoch& writes(std::uint64_t e) const { return epochs_.at(e - 1); }
  std::size_t elements() const noexcept { return elements_; }
  static std::uint64_t value(std::uint64_t e, std::uint64_t element) noexcept { return e << 32 | element; }

 private:
  std::size_t elements_;
  std::vector<epoch> epochs_;
};

/// How the writer uses its array; drawn from the seed too.
struct writer_options {
  std::string url;
  std::string path = "history";
  std::uint64_t block = 4096;
  std::uint64_t memory = 0;
  bool shared = false;
  bool sparse = false;
  bool promise = false;  ///< makes overwrite() promises for the runs that it writes
  std::chrono::milliseconds deadline{30'000};
  std::chrono::microseconds pause{0};  ///< after each epoch
};
writer_options draw_writer(round& r, std::string url, std::uint64_t nodes);
store open_store(const writer_options& o);

/// The reports of a writer: one for each epoch that was acknowledged.
class report_pipe {
 public:
  report_pipe();
  ~report_pipe();
  report_pipe(const report_pipe&) = delete;
  report_pipe& operator=(const report_pipe&) = delete;

  void write(std::uint64_t epoch) const;  ///< the child
  void writer_started();                  ///< the parent, after the fork: keeps its end only
  /// The last epoch told so far.  Waits up to `limit` for one of at least `wanted`.
  std::uint64_t wait_for(std::uint64_t wanted, std::chrono::milliseconds limit);
  /// The same when the writer has ended: everything that it had told.
  std::uint64_t last();

 private:
  int read_ = -1, write_ = -1;
  std::uint64_t last_ = 0;
};

inline constexpr int gave_up = 10;  ///< status of a writer that the library told of a failure

/// The writer, in a process of its own; returns when all epochs are written.  Throws what the
/// library throws.
void write_history(const history& h, const writer_options& o, const report_pipe& to, totals& t);

/// A crash of the writer leaves this to be checked.
struct after_crash {
  std::uint64_t kept = 0;  ///< every epoch up to this one must be there ...
  std::uint64_t last = 0;  ///< ... of the later ones up to this one any element may be
  bool read_only = false;  ///< how the checker opens the array
};
/// The checker, in a process of its own.  Throws a finding for what is lost or wrong; counts chunks
/// refused as torn where an epoch after `kept` wrote.
void check_history(const history& h, const writer_options& o, const after_crash& c, round& r);

/// `ooc verify` of the store.  Throws a finding for corrupt chunks; returns those that are torn.
std::uint64_t verify_store(const std::string& url, bool corrupt_too);

}  // namespace ooc::attack
