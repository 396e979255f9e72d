// The power fails under a program that writes, and under one that removes and replaces files.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <iostream>

#include "attack/history.hpp"
#include "attack/lost_power.hpp"
#include "oocarray/file.hpp"
#include "storage/service/store_core.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

// Files that were synced once, and are removed or replaced by others that were.
constexpr int name_count = 12;

std::vector<std::byte> bytes_of(int file, bool replaced) {
  return std::vector<std::byte>(30'000 + 1000 * file, static_cast<std::byte>(2 * file + replaced + 1));
}

void make_file(const store& s, const std::string& path, const std::vector<std::byte>& bytes) {
  file f = file::create(s, path, {.striping = {0, 0, 4096}});
  f.write_at(0, bytes);
  f.sync();
}

void check_names(const store& s, std::uint64_t boot) {
  for (int i = 0; i < name_count; ++i) {
    const std::string path = "name" + std::to_string(boot) + "-" + std::to_string(i);
    if (!s.exists(path)) {
      if (i % 3 == 0) throw finding(verdict::lost, path + ", which nobody has removed, is gone");
      if (i % 3 == 1) throw finding(verdict::lost, path + ", which was replaced in one step, is gone");
      continue;
    }
    try {
      const file f = file::open(s, path);
      std::vector<std::byte> bytes(f.size());
      f.read_at(0, bytes);
      if (bytes != bytes_of(i, false) && (i % 3 != 1 || bytes != bytes_of(i, true)))
        throw finding(verdict::wrong, path + " is there again with other bytes than it ever had");
    } catch (const error& e) {
      throw finding(verdict::lost, path + " is there again without its bytes: " + e.what());
    }
  }
}

/// A file that was removed, or replaced, is there again whole, or it is gone.
void lose_names(round& r, disk_with_power& disk, const std::string& url, std::uint64_t boot) {
  disk.switch_on();
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) throw finding(verdict::not_run, "no pipe");
  const std::string prefix = "name" + std::to_string(boot) + "-";
  const pid_t remover = r.in_child([&] {
    const store s = store::open(url);
    for (int i = 0; i < name_count; ++i) {
      make_file(s, prefix + std::to_string(i), bytes_of(i, false));
      if (i % 3 == 1) make_file(s, prefix + "new" + std::to_string(i), bytes_of(i, true));
    }
    for (int i = 0; i < name_count; ++i) {
      if (i % 3 == 1) s.core()->replace(prefix + "new" + std::to_string(i), prefix + std::to_string(i));
      if (i % 3 == 2) s.remove(prefix + std::to_string(i));
    }
    if (::write(ready[1], "+", 1) != 1) return 1;
    ::pause();
    return 0;
  });
  ::close(ready[1]);
  char one = 0;
  if (::read(ready[0], &one, 1) != 1) r.wait_for(remover);
  ::close(ready[0]);
  // The file system writes its own log every second, the database's only when it is told to.
  testing::random_pause(std::chrono::milliseconds(r.between(0, 2500)));
  ::kill(remover, SIGSTOP);
  disk.cut_power();
  ::kill(remover, SIGKILL);
  r.wait_for(remover);
  disk.unmount();
  disk.switch_on();
  const pid_t checker = r.in_child([&] {
    check_names(store::open(url), boot);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  verify_store(url, true);
  disk.unmount();
}

}  // namespace

void power_loss(round& r) {
  disk_with_power disk(r);
  const std::string url = "local:" + (disk.folder() / "store").string();
  for (std::uint64_t boot = 0, boots = r.between(1, 3); boot < boots; ++boot) {
    if (r.one_in(3)) {
      lose_names(r, disk, url, boot);
      continue;
    }
    disk.switch_on();
    const history h(r.dice()(), r.between(1000, 30000), 80, true);
    writer_options o = draw_writer(r, url, 1);
    o.path = "history" + std::to_string(boot);
    report_pipe told;
    const pid_t writer = r.in_child([&] {
      write_history(h, o, told, r.counts());
      return 0;
    });
    told.writer_started();
    std::uint64_t reached = told.wait_for(r.between(0, 40), std::chrono::seconds(40));
    testing::random_pause(std::chrono::microseconds(r.between(0, 20'000)));
    // Stopped before the power goes, so that it sees no error, and what it told was before that.
    ::kill(writer, SIGSTOP);
    disk.cut_power();
    ::kill(writer, SIGKILL);
    r.wait_for(writer);
    reached = told.last();
    disk.unmount();
    if (reached == 0) continue;

    std::uint64_t kept = reached;
    while (kept > 0 && !h.writes(kept).durable) --kept;
    std::cout << "power lost after epoch " << reached << ", durable " << kept << std::endl;
    disk.switch_on();
    const pid_t checker = r.in_child([&] {
      check_history(h, o, {kept, reached + 1}, r);
      return 0;
    });
    if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
      throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
    verify_store(url, true);
    disk.unmount();
  }
}

}  // namespace ooc::attack
