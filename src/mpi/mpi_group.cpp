// process_group over a duplicated communicator.
//
// Every operation begins with a nonblocking all-gather of headers that say what each rank has
// called, with its data if they are few; only if all called the same do more data follow.
// Waiting is testing and sleeping, so that a deadline can end it, and so that ranks that share a
// processor leave it to those that work.
// The buffers of a nonblocking operation stay where they are if the wait is given up: the group keeps them for good,
// and is of no further use.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "mpi/call_mismatch.hpp"
#include "mpi/mpi_check.hpp"
#include "mpi/notices.hpp"
#include "oocarray/error.hpp"
#include "oocarray/mpi.hpp"
#include "storage/base/duration.hpp"
#include "storage/base/notice.hpp"

namespace ooc::mpi {
namespace {

using clock = std::chrono::steady_clock;

/// Sleeps longer the longer one has waited: short operations are not slowed down, and long ones
/// cost no processor time.
class patience {
 public:
  explicit patience(std::chrono::nanoseconds longest) : longest_(longest) {}

  void pause() {
    if (++rounds_ < 64) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(nap_ + nap_ / 4, longest_);
  }

 private:
  std::chrono::nanoseconds longest_;
  unsigned rounds_ = 0;
  std::chrono::nanoseconds nap_ = std::chrono::microseconds(10);
};

constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);

/// A time of mpi_options, called `what` there.  More than ten years is as good as for ever: the clock's nanoseconds
/// reach some centuries.
std::chrono::milliseconds wait_of(std::chrono::milliseconds given, const char* what) {
  if (given < given.zero())
    throw usage_error(errc::invalid_request, std::string("mpi_options::") + what + " is " +
                                                 std::to_string(given.count()) + " ms; give 0 or more");
  return std::min<std::chrono::milliseconds>(given, std::chrono::hours(24 * 365 * 10));
}

/// Of the program, else of the environment.
std::chrono::milliseconds deadline_of(const mpi_options& o) {
  if (o.deadline != o.deadline.zero()) return wait_of(o.deadline, "deadline");
  constexpr const char* variable = "OOC_COLLECTIVE_DEADLINE";
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return default_deadline;
  const std::string what = std::string("the environment variable ") + variable;
  const auto deadline = storage::parse_duration(text, what);
  if (deadline < std::chrono::milliseconds(100))
    throw usage_error(errc::invalid_request, what + " is " + text + "; give 100ms or more");
  return deadline;
}

class group final : public process_group {
 public:
  explicit group(MPI_Comm of) {
    check(MPI_Comm_rank(of, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(of, &size_), "MPI_Comm_size");
    check(MPI_Comm_dup(of, &data_), "MPI_Comm_dup");
    check(MPI_Comm_dup(of, &notes_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_set_errhandler(notes_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    board_ = std::make_unique<notice_board>(notes_, size_);
  }

  ~group() override {
    int over = 0;
    MPI_Finalized(&over);
    if (over) return;
    if (std::uncaught_exceptions() > 0 && broken_.empty()) {
      try {
        board_->tell(notice_board::kind::left, rank_, operations_, "");
      } catch (const error&) {
        // The others find out at their deadlines.
      }
    }
    // Others may still be sending to, or waiting in, what is given up here: it stays.
    if (!broken_.empty() || board_->any_sent()) {
      (void)board_.release();
      (void)kept_.release();
      return;
    }
    MPI_Comm_free(&notes_);
    MPI_Comm_free(&data_);
  }

  /// What one rank refuses all do: no rank waits in vain for one that has left.
  void wait_as_told(const mpi_options& o) {
    together("making a group of ranks", [&] {
      deadline_ = deadline_of(o);
      notice_after_ = wait_of(o.notice_after, "notice_after");
      return bytes{};
    });
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  void barrier(std::string_view call) override { meet({"barrier", call, 0}, call); }

  bytes broadcast(std::string_view call, std::span<const std::byte> mine, int root) override {
    const bool sends = rank_ == root;
    if (!sends) mine = {};
    const call_header from = meet({"broadcast", call, mine}, call)[static_cast<std::size_t>(root)];
    const std::uint64_t length = from.payload;
    if (from.payload_fits()) return payload_of(from);
    bytes& all = kept_->data;
    if (sends)
      all.assign(mine.begin(), mine.end());
    else
      all.resize(length);
    start(MPI_Ibcast(all.data(), counted(length, call), MPI_BYTE, root, data_, new_request()), "MPI_Ibcast");
    wait(call);
    return std::exchange(all, {});
  }

  std::vector<bytes> all_gather(std::string_view call, std::span<const std::byte> mine) override {
    const std::vector<call_header> calls = meet({"all_gather", call, mine}, call);
    std::vector<bytes> parts;
    if (std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c.payload_fits(); })) {
      std::transform(calls.begin(), calls.end(), std::back_inserter(parts), payload_of);
      return parts;
    }
    transfer& t = *kept_;
    std::uint64_t total = 0;
    t.counts.clear();
    t.places.clear();
    for (const call_header& c : calls) {
      t.places.push_back(counted(total, call));
      t.counts.push_back(counted(c.payload, call));
      total += c.payload;
    }
    counted(total, call);
    t.own.assign(mine.begin(), mine.end());
    t.data.resize(total);
    start(MPI_Iallgatherv(t.own.data(), t.counts[static_cast<std::size_t>(rank_)], MPI_BYTE, t.data.data(),
                          t.counts.data(), t.places.data(), MPI_BYTE, data_, new_request()),
          "MPI_Iallgatherv");
    wait(call);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::byte* from = t.data.data() + t.places[i];
      parts.emplace_back(from, from + t.counts[i]);
    }
    t.data = {};
    return parts;
  }

  void all_reduce(std::string_view call, std::span<std::uint64_t> values, reduction how) override {
    const std::string shaped = std::string(call) + ", " + std::to_string(values.size()) + " values";
    meet({"all_reduce", shaped, values.size()}, call);
    if (values.empty()) return;
    const MPI_Op op = how == reduction::sum ? MPI_SUM : how == reduction::max ? MPI_MAX : MPI_MIN;
    std::vector<std::uint64_t>& v = kept_->values;
    v.assign(values.begin(), values.end());
    start(MPI_Iallreduce(MPI_IN_PLACE, v.data(), counted(v.size(), call), MPI_UINT64_T, op, data_, new_request()),
          "MPI_Iallreduce");
    wait(call);
    std::copy(v.begin(), v.end(), values.begin());
  }

  void exchange(std::string_view call, std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in, std::shared_ptr<const void> owner) override {
    for (const auto& to : in) counted(to.size(), call);
    for (const auto& from : out) counted(from.size(), call);
    meet({"exchange", call, 0}, call);
    kept_->owner = std::move(owner);
    for (int r = 0; r < size_; ++r) {
      const std::span<std::byte> to = in[static_cast<std::size_t>(r)];
      if (r == rank_ || to.empty()) continue;
      start(MPI_Irecv(to.data(), static_cast<int>(to.size()), MPI_BYTE, r, exchange_tag, data_, new_request()),
            "MPI_Irecv");
    }
    for (int r = 0; r < size_; ++r) {
      const std::span<const std::byte> from = out[static_cast<std::size_t>(r)];
      if (r == rank_ || from.empty()) continue;
      start(MPI_Isend(from.data(), static_cast<int>(from.size()), MPI_BYTE, r, exchange_tag, data_, new_request()),
            "MPI_Isend");
    }
    wait(call, std::chrono::microseconds(100));
    kept_->owner.reset();
  }

 private:
  /// The buffers that MPI reads and writes while an operation is on its way.
  struct transfer {
    call_header own_call;
    std::vector<call_header> calls;
    bytes own;
    bytes data;
    std::vector<int> counts, places;
    std::vector<std::uint64_t> values;
    std::shared_ptr<const void> owner;  ///< of what an exchange() sends and receives
  };

  static constexpr int exchange_tag = 1;

  static bytes payload_of(const call_header& c) {
    return {c.bytes.begin(), c.bytes.begin() + static_cast<std::ptrdiff_t>(c.payload)};
  }

  static int counted(std::uint64_t n, std::string_view call) {
    if (n > std::numeric_limits<int>::max())
      throw usage_error(errc::invalid_request, std::string(call) + ": the ranks exchange " + std::to_string(n) +
                                                   " bytes, and one operation carries at most 2^31 - 1");
    return static_cast<int>(n);
  }

  /// Waits for all ranks; throws where they do not call the same.
  std::vector<call_header> meet(const call_header& mine, std::string_view call) {
    if (!broken_.empty())
      throw io_error::in_full(std::make_error_code(std::errc::connection_aborted),
                              std::string(call) + ": the group failed before: " + broken_);
    ++operations_;
    transfer& t = *kept_;
    t.own_call = mine;
    t.calls.assign(static_cast<std::size_t>(size_), {});
    start(MPI_Iallgather(&t.own_call, sizeof(call_header), MPI_BYTE, t.calls.data(), sizeof(call_header), MPI_BYTE,
                         data_, new_request()),
          "MPI_Iallgather");
    wait(call);
    if (const std::string differ = difference(t.calls); !differ.empty()) throw usage_error(errc::not_together, differ);
    return t.calls;
  }

  void start(int code, const char* operation) {
    if (code != MPI_SUCCESS) broken_ = std::string(operation) + " failed";
    check(code, operation);
  }

  MPI_Request* new_request() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  /// Large messages advance only when they are tested: then naps must be short.
  void wait(std::string_view call, std::chrono::nanoseconds longest_nap = std::chrono::milliseconds(1)) {
    const clock::time_point begin = clock::now(), end = begin + deadline_;
    patience p(longest_nap);
    for (;;) {
      // Notices first: what others gave up on must not end well here.
      board_->read();
      for (int r = 0; r < size_; ++r) {
        const notice_board::standing& s = board_->of(r);
        if (s.left && s.at < operations_)
          give_up(call, std::errc::connection_aborted,
                  "rank " + std::to_string(r) + " left: an exception ended its part of the program");
        if (s.gave_up && s.at >= operations_) expire(call);
        if (s.gave_up)
          give_up(call, std::errc::connection_aborted,
                  "rank " + std::to_string(r) + " gave up before, in " + s.call + ", and does not come any more");
      }
      int done = 0;
      start(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
      if (done) return requests_.clear();
      const clock::time_point now = clock::now();
      if (now > end) expire(call);
      if (notice_after_ != notice_after_.zero() && now > begin + notice_after_) say_that_ranks_wait(call, now, end);
      p.pause();
    }
  }

  /// Everybody who waits tells the others, and a moment later the lowest of them names those who have not come.
  void say_that_ranks_wait(std::string_view call, clock::time_point now, clock::time_point end) {
    if (told_in_ != operations_) {
      told_in_ = operations_;
      said_at_ = now + std::min(std::chrono::milliseconds(1000), notice_after_);
      board_->tell(notice_board::kind::waits, rank_, operations_, call);
    }
    if (now < said_at_) return;
    said_at_ = clock::time_point::max();
    std::vector<int> waiting, missing;
    for (int r = 0; r < size_; ++r)
      (r == rank_ || board_->of(r).waits_in == operations_ ? waiting : missing).push_back(r);
    // Where all have come, what they exchange is on its way.
    if (missing.empty() || waiting.front() != rank_) return;
    storage::notice("rank " + list_of_ranks(waiting) + (waiting.size() == 1 ? " waits" : " wait") + " for rank " +
                    list_of_ranks(missing) + " in " + std::string(call) + ", " + storage::until_text(end, deadline_));
  }

  [[noreturn]] void give_up(std::string_view call, std::errc code, const std::string& why) {
    broken_ = why;
    throw io_error::in_full(std::make_error_code(code), std::string(call) + ": " + why);
  }

  /// The deadline has passed, here or on another rank.  Everybody who waits says so, which leaves
  /// those that everybody waits for.
  [[noreturn]] void expire(std::string_view call) {
    board_->tell(notice_board::kind::gave_up, rank_, operations_, call);
    const clock::time_point end = clock::now() + std::chrono::seconds(1);
    std::vector<int> missing;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      board_->read();
      missing.clear();
      for (int r = 0; r < size_; ++r)
        if (r != rank_ && !(board_->of(r).gave_up && board_->of(r).at >= operations_)) missing.push_back(r);
    } while (!missing.empty() && clock::now() < end);
    const std::string waited =
        " within " + std::to_string(deadline_.count()) + " ms: it has died, is busy, or waits elsewhere";
    give_up(call, std::errc::timed_out,
            missing.empty() ? "the ranks came too late: others had given up waiting"
                            : "rank " + list_of_ranks(missing) + " did not come" + waited);
  }

  std::chrono::milliseconds deadline_ = default_deadline, notice_after_ = mpi_options().notice_after;
  int rank_ = 0;
  int size_ = 1;
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm notes_ = MPI_COMM_NULL;
  std::vector<MPI_Request> requests_;  ///< of the operation in progress
  std::unique_ptr<transfer> kept_ = std::make_unique<transfer>();
  std::unique_ptr<notice_board> board_;
  std::uint64_t operations_ = 0;
  std::uint64_t told_in_ = 0;  ///< the operation in which the others were told that this rank waits
  clock::time_point said_at_;  ///< when a line is to say it
  std::string broken_;         ///< why the group is of no further use
};

}  // namespace
}  // namespace ooc::mpi

namespace ooc {

std::shared_ptr<process_group> mpi_group(MPI_Comm comm, const mpi_options& options) {
  auto made = std::make_shared<mpi::group>(comm);
  try {
    made->wait_as_told(options);
  } catch (...) {
    made.reset();  // in here it does not tell the others that it has been left: they throw as well
    throw;
  }
  return made;
}

}  // namespace ooc
