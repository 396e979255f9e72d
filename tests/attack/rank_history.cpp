#include "attack/rank_history.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <system_error>

namespace ooc::attack {

rank_board& map_rank_board(const std::filesystem::path& file) {
  const auto fail = [&] { throw std::system_error(errno, std::generic_category(), file.string()); };
  const int made = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const int fd = made >= 0 ? made : ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 || (made >= 0 && ::ftruncate(fd, sizeof(rank_board)) != 0)) fail();
  void* const p = ::mmap(nullptr, sizeof(rank_board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) fail();
  ::close(fd);
  return made >= 0 ? *new (p) rank_board : *static_cast<rank_board*>(p);
}

namespace {

writer_options draw_rank_writer(round& r, const std::string& url) {
  writer_options o = draw_writer(r, url, 3);
  o.block = 4096 << r.between(0, 2);
  o.memory = 3 * 64_KiB + o.block * r.between(40, 90);
  o.pause = std::chrono::milliseconds(r.between(0, 3));
  return o;
}

}  // namespace

rank_plan::rank_plan(std::uint64_t seed, const std::string& url, totals& t)
    : epochs(seed, 1000 + seed % 50'000, 150, true) {
  round r(seed, ".", t);
  how = draw_rank_writer(r, url);
  owner_computes = r.one_in(3);
}

}  // namespace ooc::attack
