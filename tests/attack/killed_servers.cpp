// Servers are killed or stopped while a client writes, and come back, or do not; the client is
// killed in some rounds.  A client whose server comes back goes on; one whose server stays away
// ends with an error, within the deadline and five seconds.  So do whole programs: copies with the `ooc` command, and
// an example that keeps all of its data in arrays.
#include <iostream>
#include <optional>

#include "attack/history.hpp"
#include "attack/served_store.hpp"
#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "oocarray/runtime.hpp"
#include "support/pauses.hpp"

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;

pid_t start_writer(round& r, const history& h, const writer_options& o, report_pipe& told) {
  const pid_t writer = r.in_child([&] {
    try {
      write_history(h, o, told, r.counts());
    } catch (const error& e) {
      std::cout << "the writer: " << e.what() << std::endl;
      return gave_up;
    }
    return 0;
  });
  told.writer_started();
  return writer;
}

/// Keeps the servers busy until it is killed, so that what others ask for waits for its turn.
pid_t start_companion(round& r, const writer_options& o) {
  return r.in_child([&] {
    const store s = open_store(o);
    file f = file::create(s, "companion", {.size = 4 << 20});
    const std::vector<std::byte> much(4 << 20);
    for (;;) f.write_at(0, much);
    return 0;
  });
}

void disturb(round& r, served_store& servers) {
  const std::string who = servers.any_server(r);
  const milliseconds away(r.between(0, 1500));
  if (r.one_in(2)) {
    std::cout << who << " is killed" << std::endl;
    servers.send(who, SIGKILL);
    testing::random_pause(away);
    servers.up();
  } else {
    std::cout << who << " is stopped for " << away.count() << " ms" << std::endl;
    servers.send(who, SIGSTOP);
    testing::random_pause(away);
    servers.send(who, SIGCONT);
  }
}

/// Longer than a client listens to a silent connection (a third of its deadline): it gives the
/// connection up and comes again on another, while the server still has what came on the first.
void outlast_connection(round& r, served_store& servers) {
  const milliseconds away(r.between(3200, 5000));
  std::cout << "iod-0 is stopped for " << away.count() << " ms" << std::endl;
  servers.send("iod-0", SIGSTOP);
  testing::random_pause(away);
  servers.send("iod-0", SIGCONT);
}

/// A server stays away: an error in time.
void stays_away(round& r, served_store& servers, pid_t writer, const writer_options& o) {
  // Without I/O servers nothing can be written; an array that is open does without the metadata
  // server.
  const std::string who = "iod-0";
  const bool dead = r.one_in(2);
  std::cout << who << " stays away" << std::endl;
  servers.send(who, dead ? SIGKILL : SIGSTOP);
  const int status = r.wait_for(writer, o.deadline + std::chrono::seconds(5),
                                "a writer whose I/O server " + std::string(dead ? "is dead" : "is stopped") +
                                    " (deadline " + std::to_string(o.deadline.count()) + " ms)");
  if (status != 0 && status != gave_up && status != fatal_exit_status)
    throw finding(verdict::failed, "the writer ended with status " + std::to_string(status));
  if (dead)
    servers.up();
  else
    servers.send(who, SIGCONT);
}

/// The same under a whole program.  Without any outage it may take as long as it did before.
void program_loses_server(round& r) {
  served_store servers(r.folder() / "store", r.between(1, 3));
  const milliseconds deadline(3000);
  const std::string store = servers.url() + "?deadline=3s", plain = "file:" + (r.folder() / "plain").string();
  {
    std::ofstream out(r.folder() / "plain");
    const std::string some(1 << 20, 'p');
    for (int n = 0; n < 48; ++n) out << some;
  }
  // An array that is open does without the metadata server, so a long run would go on.
  const bool copies = r.one_in(2);
  const std::string who = copies && r.one_in(2) ? "metad" : "iod-0";
  std::vector<std::string> words{OOC_COMMAND, "cp", "-q", "--store", store, plain, "copy"};
#ifdef OOC_JACOBI
  if (!copies) words = {OOC_JACOBI, "--size", "1201", "--memory", "6M", "--iterations", "100000", "--store", store};
#endif
  milliseconds calm{0};
  if (words[1] == "cp") {
    const auto start = std::chrono::steady_clock::now();
    if (const command_result c = run_command(words); c.status != 0)
      throw finding(verdict::failed, "ooc cp ended with status " + std::to_string(c.status) + ": " + c.output);
    calm = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
  }
  const pid_t program = r.in_child([&] {
    const command_result c = run_command(words);
    std::cout << words[0] << ": status " << c.status << ": " << c.output << std::endl;
    return c.status;
  });
  testing::random_pause(milliseconds(r.between(0, 1500)));
  const bool dead = r.one_in(2);
  servers.send(who, dead ? SIGKILL : SIGSTOP);
  const std::string what = words[0] + " whose " + who + (dead ? " is dead" : " is stopped");
  std::cout << what << std::endl;
  const int status = r.wait_for(program, calm + deadline + std::chrono::seconds(5),
                                what + " (deadline 3000 ms, " + std::to_string(calm.count()) + " ms without that)");
  if (status != 0 && status != 1 && status != fatal_exit_status)
    throw finding(verdict::failed, what + " ended with status " + std::to_string(status));
  if (!dead) servers.send(who, SIGCONT);
}

}  // namespace

void killed_servers(round& r) {
  if (r.one_in(6)) return program_loses_server(r);
  const std::uint64_t nodes = r.between(1, 3);
  served_store servers(r.folder() / "store", nodes);
  enum { stays, killed_client, silent, any, another };
  const std::uint64_t plot = r.between(stays, another);
  const history h(r.dice()(), plot == silent ? r.between(20'000, 200'000) : r.between(1000, 60'000),
                  plot == stays ? 2000 : 120, r.one_in(2));
  writer_options o = draw_writer(r, servers.url(), nodes);
  o.deadline = milliseconds(plot == stays ? 3000 : plot == silent ? 9000 : 30'000);
  o.pause = std::chrono::milliseconds(plot == silent ? 0 : 5);
  std::optional<pid_t> companion;
  if (plot == silent) {
    o.block = 64_KiB;
    o.memory = 4_MiB;
    o.shared = false;
    if (r.one_in(2)) companion = start_companion(r, o);
  }

  report_pipe told;
  const pid_t writer = start_writer(r, h, o, told);
  std::uint64_t reached = told.wait_for(r.between(1, 20), std::chrono::seconds(40));
  if (plot == stays) {
    stays_away(r, servers, writer, o);
  } else if (plot == killed_client) {
    disturb(r, servers);
    ::kill(writer, SIGKILL);
    r.wait_for(writer);
  } else {
    for (std::uint64_t n = r.between(1, 3); n > 0; --n) {
      reached = told.wait_for(reached + r.between(1, 20), std::chrono::seconds(40));
      if (plot == silent)
        outlast_connection(r, servers);
      else
        disturb(r, servers);
    }
    if (const int status = r.wait_for(writer, std::chrono::seconds(90), "the writer"))
      throw finding(verdict::failed,
                    "servers came back in time, the writer ended with status " + std::to_string(status));
  }
  if (companion) {
    ::kill(*companion, SIGKILL);
    r.wait_for(*companion);
  }
  const std::uint64_t kept = told.last();
  if (kept == 0) return;  // the array may never have been made

  // Nothing that has been acknowledged is only in a server's memory.
  for (std::uint64_t n = 0; n < nodes; ++n) servers.send("iod-" + std::to_string(n), SIGKILL);
  servers.send("metad", SIGKILL);
  servers.up();
  o.deadline = milliseconds(30'000);
  const pid_t checker = r.in_child([&] {
    // The claim of a writer that was killed is not given to others at once.
    check_history(h, o, {kept, kept + 1, true}, r);
    return 0;
  });
  if (const int s = r.wait_for(checker, std::chrono::seconds(80), "the checker"))
    throw finding(verdict::failed, "the checker ended with status " + std::to_string(s));
  verify_store(o.url, false);
}

}  // namespace ooc::attack
