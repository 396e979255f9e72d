// A writing process is killed with -9 at a random moment: what was acknowledged is there.
#include <signal.h>

#include <iostream>

#include "attack/history.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

void killed_writers(round& r) {
  const std::uint64_t nodes = r.between(1, 2);
  std::string url = "local:" + (r.folder() / "node0").string();
  if (nodes == 2) url += "," + (r.folder() / "node1").string();

  for (std::uint64_t life = 0, lives = r.between(2, 4); life < lives; ++life) {
    const history h(r.dice()(), r.between(1000, 60000), 60, r.one_in(2));
    writer_options o = draw_writer(r, url, nodes);
    o.path = "history" + std::to_string(life);
    report_pipe told;
    const pid_t writer = r.in_child([&] {
      write_history(h, o, told, r.counts());
      return 0;
    });
    told.writer_started();
    told.wait_for(r.between(0, 30), std::chrono::seconds(30));
    testing::random_pause(std::chrono::microseconds(r.between(0, 6000)));
    ::kill(writer, SIGKILL);
    const int status = r.wait_for(writer);
    if (status != 0 && status != 128 + SIGKILL)
      throw finding(verdict::failed, "the writer ended with status " + std::to_string(status));
    const std::uint64_t kept = told.last();
    std::cout << "killed after epoch " << kept << std::endl;
    if (kept == 0 && status != 0) continue;  // killed while it made the array, perhaps

    const std::uint64_t torn = r.counts().torn;
    const pid_t checker = r.in_child([&] {
      check_history(h, o, {kept, kept + 1, r.one_in(2)}, r);
      return 0;
    });
    if (const int s = r.wait_for(checker, std::chrono::seconds(60), "the checker"))
      throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
    if (verify_store(url, false) > 0 && torn == r.counts().torn && life == 0)
      throw finding(verdict::failed, "ooc verify names torn chunks where every element reads");
  }
}

}  // namespace ooc::attack
