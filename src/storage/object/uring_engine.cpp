#include "storage/object/uring_engine.hpp"

#include <liburing.h>

#include <chrono>
#include <thread>

namespace ooc::storage {
namespace {

constexpr unsigned depth = 64;

class uring_engine final : public transfer_engine {
 public:
  ~uring_engine() override {
    if (open_) io_uring_queue_exit(&ring_);
  }

  bool open() {
    // One thread submits and reaps: newer kernels save interrupts when they know that.
    if (io_uring_queue_init(depth, &ring_, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) != 0 &&
        io_uring_queue_init(depth, &ring_, 0) != 0)
      return false;
    open_ = true;
    again_.reserve(depth);  // nothing may be wanting while transfers are in flight
    return answers();
  }

  void run(int fd, direction d, transfer_list& list) override {
    std::size_t next = 0;
    unsigned in_flight = 0;
    again_.clear();
    while (next < list.extents.size() || !again_.empty() || in_flight > 0) {
      while (in_flight < depth) {
        std::size_t index = next;
        if (!again_.empty()) {
          index = again_.back();
        } else if (next == list.extents.size()) {
          break;
        } else if (list.extents[next].complete()) {
          ++next;
          continue;
        }
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        if (sqe == nullptr) break;
        if (again_.empty())
          ++next;
        else
          again_.pop_back();
        prepare(sqe, fd, d, list, index);
        ++in_flight;
      }
      if (in_flight == 0) break;
      // A failing submission (the kernel short of memory, a signal) leaves its entries queued.
      if (io_uring_submit_and_wait(&ring_, 1) < 0 && io_uring_cq_ready(&ring_) == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      io_uring_cqe* cqe = nullptr;
      unsigned head = 0;
      unsigned seen = 0;
      io_uring_for_each_cqe(&ring_, head, cqe) {
        const auto index = static_cast<std::size_t>(cqe->user_data);
        ++seen;
        if (continue_transfer(list.extents[index], list.memory, d, cqe->res)) again_.push_back(index);
      }
      io_uring_cq_advance(&ring_, seen);
      in_flight -= seen;
    }
  }

 private:
  // Some sandboxes let a ring be made but not entered.
  bool answers() {
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    if (sqe == nullptr) return false;
    io_uring_prep_nop(sqe);
    if (io_uring_submit_and_wait(&ring_, 1) != 1) return false;
    io_uring_cqe* cqe = nullptr;
    if (io_uring_peek_cqe(&ring_, &cqe) != 0) return false;
    io_uring_cqe_seen(&ring_, cqe);
    return true;
  }

  static void prepare(io_uring_sqe* sqe, int fd, direction d, transfer_list& list, std::size_t index) {
    const transfer& t = list.extents[index];
    const iovec* v = list.memory.data() + t.first;
    const std::uint64_t at = t.offset + t.done;
    const auto one = static_cast<unsigned>(v->iov_len);
    if (t.count == 1 && d == direction::read)
      io_uring_prep_read(sqe, fd, v->iov_base, one, at);
    else if (t.count == 1)
      io_uring_prep_write(sqe, fd, v->iov_base, one, at);
    else if (d == direction::read)
      io_uring_prep_readv(sqe, fd, v, t.count, at);
    else
      io_uring_prep_writev(sqe, fd, v, t.count, at);
    io_uring_sqe_set_data64(sqe, index);
  }

  io_uring ring_{};
  bool open_ = false;
  std::vector<std::size_t> again_;
};

}  // namespace

std::unique_ptr<transfer_engine> make_uring_engine() {
  auto engine = std::make_unique<uring_engine>();
  if (!engine->open()) return nullptr;
  return engine;
}

}  // namespace ooc::storage
