#include "mpi/notices.hpp"

#include <algorithm>

#include "mpi/mpi_check.hpp"

namespace ooc::mpi {
namespace {

constexpr int tag = 1;

}  // namespace

void notice_board::tell(kind k, int me, std::uint64_t operation, std::string_view call) {
  message& m = sent_.emplace_back(message{k, 0, operation, {}});
  std::copy_n(call.data(), std::min(call.size(), m.call.size() - 1), m.call.data());
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (rank == me) continue;
    MPI_Request& r = requests_.emplace_back(MPI_REQUEST_NULL);
    check(MPI_Isend(&m, sizeof m, MPI_BYTE, rank, tag, comm_, &r), "MPI_Isend of a notice");
  }
}

void notice_board::read() {
  for (;;) {
    int arrived = 0;
    MPI_Status from;
    check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &arrived, &from), "MPI_Iprobe");
    if (!arrived) return;
    message m{};
    check(MPI_Recv(&m, sizeof m, MPI_BYTE, from.MPI_SOURCE, tag, comm_, MPI_STATUS_IGNORE), "MPI_Recv of a notice");
    standing& s = ranks_[static_cast<std::size_t>(from.MPI_SOURCE)];
    if (m.what == kind::waits) {
      s.waits_in = m.operation;
      continue;
    }
    (m.what == kind::left ? s.left : s.gave_up) = true;
    s.at = m.operation;
    s.call = m.call.data();
  }
}

}  // namespace ooc::mpi
