// The driver of the attack: seeded rounds, each a process with a time limit, and the totals.
//
// Round n of a run has the seed  S + n * step,  so round 0 of `--only KIND --seed SEED` replays
// any.  Totals that are kept hold S and the number of rounds: the next run goes on with round n
// + 1.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/program_options.hpp>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <type_traits>
#include <vector>

#include "attack/round.hpp"

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace ooc::attack {

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr std::uint64_t seed_step = 0x9e3779b97f4a7c15u;

struct kind {
  const char* name;
  round_function run;
  unsigned weight;  ///< how often it is drawn
  seconds limit;    ///< after which it counts as hung, far beyond every deadline in it
};
// In the order of a first pass through all of them.
constexpr std::array kinds{
    kind{"random_programs", random_programs, 12, seconds(120)}, kind{"block_programs", block_programs, 4, seconds(120)},
    kind{"rank_programs", rank_programs, 6, seconds(180)},      kind{"killed_writers", killed_writers, 8, seconds(120)},
    kind{"killed_servers", killed_servers, 4, seconds(240)},    kind{"power_loss", power_loss, 4, seconds(180)},
    kind{"damaged_files", damaged_files, 6, seconds(120)},      kind{"full_disks", full_disks, 4, seconds(120)},
    kind{"hostile_clients", hostile_clients, 2, seconds(180)},  kind{"cut_networks", cut_networks, 2, seconds(240)},
    kind{"delayed_packets", delayed_packets, 3, seconds(120)},  kind{"killed_ranks", killed_ranks, 4, seconds(400)},
    kind{"forging_clients", forging_clients, 3, seconds(180)},  kind{"revoked_keys", revoked_keys, 2, seconds(400)},
    kind{"shared_files", shared_files, 8, seconds(240)},        kind{"commits", commits, 8, seconds(400)},
    kind{"moved_files", moved_files, 6, seconds(400)},
};

struct settings {
  std::uint64_t seed = 0;
  bool seed_given = false;
  std::uint64_t rounds = 0;  ///< 0: as many as the time allows
  std::chrono::duration<double> time{0};
  std::vector<const kind*> drawn;  ///< each as often as its weight says
  std::vector<const kind*> first;  ///< each once
  fs::path folder;
  bool keep = false;
  bool stop_at_first = false;
};

/// Processes that rounds left behind come to us (we are their subreaper): they are ended.
void end_orphans() {
  for (bool any = true; any;) {
    any = false;
    for (const auto& e : fs::directory_iterator("/proc")) {
      const std::string name = e.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream in(e.path() / "stat");
      std::string line;
      if (!std::getline(in, line)) continue;
      std::istringstream after(line.substr(line.rfind(')') + 1));
      char state = 0;
      pid_t parent = 0;
      after >> state >> parent;
      if (parent != ::getpid()) continue;
      const pid_t pid = std::stoi(name);
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
      any = true;
    }
  }
}

/// Its mounts are in a name space of its own and end with it.
[[noreturn]] void be_a_round(const kind& k, std::uint64_t seed, const fs::path& folder, totals& t) {
  const int log = ::open((folder / "log").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(log, 1);
  ::dup2(log, 2);
  if (::unshare(CLONE_NEWNS) == 0) ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  ::setenv("TMPDIR", folder.c_str(), 1);
  round r(seed, folder, t);
  try {
    k.run(r);
  } catch (const finding& f) {
    round::tell(t, f.what_it_is, f.what());
  } catch (const std::exception& e) {
    round::tell(t, verdict::failed, std::string("unexpected: ") + e.what());
  }
  std::cout << std::flush;
  ::_exit(0);
}

std::string end_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr std::size_t most = 3000;
  return text.size() > most ? "..." + text.substr(text.size() - most) : text;
}

class run {
 public:
  explicit run(settings s) : s_(std::move(s)), totals_(map_totals(s_.folder / "totals")) {}

  /// The number of rounds that found something.
  std::uint64_t all() {
    static_assert(kinds.size() <= std::extent_v<decltype(totals::kinds)>);
    if (totals_.runs == 0) totals_.seed = s_.seed;
    if (s_.seed_given && s_.seed != totals_.seed)
      throw std::invalid_argument("--totals: the file goes on with seed " + std::to_string(totals_.seed) +
                                  "; leave --seed out, or name a new file");
    ++totals_.runs;
    std::cout << "seed " << totals_.seed << ", from round " << totals_.rounds << " on" << std::endl;
    const auto begun = clock::now();
    auto spoke = begun;
    for (std::uint64_t done = 0; s_.rounds == 0 || done < s_.rounds; ++done) {
      if (s_.time.count() > 0 && clock::now() - begun >= s_.time) break;
      const std::uint64_t n = totals_.rounds, seed = totals_.seed + n * seed_step;
      const std::uint64_t die = std::mt19937_64(~seed)();
      one(*(n < s_.first.size() ? s_.first[n] : s_.drawn[die % s_.drawn.size()]), seed, n);
      ++totals_.rounds;
      if (findings_ != 0 && s_.stop_at_first) break;
      if (clock::now() - spoke > seconds(60)) {
        spoke = clock::now();
        std::cout << "after " << totals_.rounds << " rounds: " << findings_ << " findings" << std::endl;
      }
    }
    print();
    return findings_;
  }

 private:
  void one(const kind& k, std::uint64_t seed, std::uint64_t n) {
    const fs::path folder = s_.folder / ("round-" + std::to_string(n));
    fs::create_directories(folder);
    totals_.told = false;
    totals_.outcome = verdict::passed;
    totals_.text[0] = 0;
    const auto begun = clock::now();
    std::cout << std::flush;
    const pid_t child = ::fork();
    if (child == 0) be_a_round(k, seed, folder, totals_);
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    pollfd p{fd, POLLIN, 0};
    const bool ended = ::poll(&p, 1, static_cast<int>(std::chrono::milliseconds(k.limit).count())) == 1;
    ::close(fd);
    if (!ended) {
      round::tell(totals_, verdict::hung, "the round did not end within " + std::to_string(k.limit.count()) + " s");
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    end_orphans();
    if (status != 0 && ended)
      round::tell(totals_, verdict::failed, "the round's process ended with wait status " + std::to_string(status));

    const verdict v = totals_.outcome;
    tally& t = totals_.kinds[&k - kinds.data()];
    t.milliseconds +=
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begun).count());
    ++t.of[static_cast<std::size_t>(v)];
    const bool bad = v != verdict::passed && v != verdict::not_run;
    if (v != verdict::passed && (bad || t.of[static_cast<std::size_t>(v)] == 1)) {
      std::cout << k.name << ": " << name_of(v) << ": " << totals_.text << std::endl;
      if (bad) {
        ++findings_;
        std::cout << "  replay: scripts/attack --only " << k.name << " --seed " << seed << " --rounds 1\n"
                  << end_of(folder / "log") << std::endl;
      }
    }
    std::error_code ignored;
    if (bad && s_.keep)
      std::cout << "  kept: " << folder.string() << std::endl;
    else
      fs::remove_all(folder, ignored);
  }

  void print() const {
    std::cout << std::left << std::setw(18) << "kind" << std::right;
    for (const char* head : {"rounds", "seconds", "passed", "lost", "wrong", "failed", "hung", "slow", "not run"})
      std::cout << std::setw(9) << head;
    std::cout << "\n";
    tally sum;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const tally& t = totals_.kinds[i];
      row(kinds[i].name, t);
      sum.milliseconds += t.milliseconds;
      for (std::size_t v = 0; v < verdicts; ++v) sum.of[v] += t.of[v];
    }
    row("all", sum);
    std::cout << totals_.operations << " operations, " << totals_.acknowledged_bytes << " bytes acknowledged, "
              << totals_.torn << " chunks cut short by a crash and refused as torn, " << totals_.refused
              << " calls refused\n"
              << "innocent client: slowest small read " << totals_.slowest_read_us / 1000 << " ms, slowest look-up "
              << totals_.slowest_lookup_us / 1000 << " ms\n";
    if (totals_.runs > 1) std::cout << "in " << totals_.runs << " runs\n";
    std::cout << std::flush;
  }
  static void row(const char* name, const tally& t) {
    std::uint64_t rounds = 0;
    for (const auto& n : t.of) rounds += n;
    if (rounds == 0) return;
    std::cout << std::left << std::setw(18) << name << std::right << std::setw(9) << rounds << std::setw(9)
              << t.milliseconds / 1000;
    for (const auto& n : t.of) std::cout << std::setw(9) << n;
    std::cout << "\n";
  }

  settings s_;
  totals& totals_;
  std::uint64_t findings_ = 0;
};

void choose(settings& s, const std::string& only, const std::string& except) {
  const auto named = [](const std::string& list, const char* name) {
    return ("," + list + ",").find("," + std::string(name) + ",") != std::string::npos;
  };
  for (const kind& k : kinds) {
    if (!only.empty() && !named(only, k.name)) continue;
    if (named(except, k.name)) continue;
    s.first.push_back(&k);
    s.drawn.insert(s.drawn.end(), k.weight, &k);
  }
  if (s.first.empty()) {
    std::string names;
    for (const kind& k : kinds) names += std::string(" ") + k.name;
    throw std::invalid_argument("no kind of round is left; there are:" + names);
  }
}

int main_program(int argc, char** argv) {
  settings s;
  std::string only, except, folder = fs::temp_directory_path(), kept_totals;
  double minutes = 0;
  po::options_description options("Attacks the library and its servers in seeded rounds");
  options.add_options()("help,h", "this text")("seed", po::value(&s.seed), "of the run; otherwise drawn")(
      "rounds", po::value(&s.rounds), "at most so many")(
      "minutes", po::value(&minutes),
      "no new round after so long; otherwise OOC_ATTACK_MINUTES, or 1 where --rounds is not given")(
      "only", po::value(&only), "kinds of rounds, separated by commas")("except", po::value(&except),
                                                                        "the same: all but these")(
      "folder", po::value(&folder), "where files may be made, on a file system that knows O_DIRECT")(
      "totals", po::value(&kept_totals),
      "file that keeps the totals, so that a long run can be done in pieces: the next one goes on "
      "after "
      "the last round of this, with the same seed, and adds to them")("stop", po::bool_switch(&s.stop_at_first),
                                                                      "stop at the first finding")(
      "keep", po::bool_switch(&s.keep), "keep the folders of rounds that found something");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.count("help") != 0) {
    std::cout << options;
    return 0;
  }
  s.seed_given = given.count("seed") != 0;
  if (!s.seed_given) s.seed = std::random_device{}();
  if (given.count("minutes") == 0 && s.rounds == 0) {
    const char* wanted = std::getenv("OOC_ATTACK_MINUTES");
    minutes = wanted == nullptr ? 1 : std::stod(wanted);
  }
  s.time = std::chrono::duration<double>(minutes * 60);
  choose(s, only, except);

  std::string scratch = fs::path(folder) / "oocarray-attack-XXXXXX";
  if (::mkdtemp(scratch.data()) == nullptr) throw std::system_error(errno, std::generic_category(), scratch);
  s.folder = scratch;
  if (!kept_totals.empty()) fs::create_symlink(fs::absolute(kept_totals), s.folder / "totals");
  const bool keep = s.keep;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  const std::uint64_t findings = run(std::move(s)).all();
  std::error_code ignored;
  if (findings == 0 || !keep) fs::remove_all(scratch, ignored);
  return findings == 0 ? 0 : 1;
}

}  // namespace

}  // namespace ooc::attack

int main(int argc, char** argv) {
  try {
    return ooc::attack::main_program(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "attack: " << e.what() << "\n";
    return 2;
  }
}
