// Messages outside the order of operations: a rank says that it waits, that it gave up waiting, or that it leaves.
//
// Small, never answered, and read by whoever waits: this is how a rank that waits learns that it
// waits in vain, and whom the others miss.  Not thread-safe.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace ooc::mpi {

class notice_board {
 public:
  /// The known state of a rank.
  struct standing {
    bool left = false;           ///< it was unwound by an exception
    bool gave_up = false;        ///< it waited longer than its deadline
    std::uint64_t at = 0;        ///< the operation (counted from 1) that it came to last
    std::string call;            ///< that operation's text
    std::uint64_t waits_in = 0;  ///< the operation that it has said it has been waiting in for some time
  };

  /// `comm` belongs to the caller and must live as long as messages are on their way.
  notice_board(MPI_Comm comm, int size) : comm_(comm), ranks_(static_cast<std::size_t>(size)) {}

  enum class kind : std::uint32_t { left = 1, gave_up, waits };
  /// Tells every other rank; does not wait.
  void tell(kind k, int me, std::uint64_t operation, std::string_view call);
  /// Takes in what has arrived.
  void read();

  const standing& of(int rank) const noexcept { return ranks_[static_cast<std::size_t>(rank)]; }
  bool any_sent() const noexcept { return !sent_.empty(); }

 private:
  struct message {
    kind what;
    std::uint32_t reserved = 0;
    std::uint64_t operation;
    std::array<char, 240> call;
  };
  static_assert(sizeof(message) == 256);

  MPI_Comm comm_;
  std::vector<standing> ranks_;
  std::deque<message> sent_;  ///< stays in place: MPI may still be reading
  std::vector<MPI_Request> requests_;
};

}  // namespace ooc::mpi
