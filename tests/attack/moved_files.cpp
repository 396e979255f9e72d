// Files are dealt out anew, nodes come and are emptied, while programs read and write; the commands that do it are
// killed, and repeated.  Nobody ever reads anything but what was written, or is just being written, and a node that was
// emptied is not missed.
//
// Each 8 bytes of a file say which file, place and version they are.  A writer goes from version to version; readers
// keep a file open over many moves.
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstring>
#include <iostream>
#include <optional>

#include "attack/history.hpp"
#include "attack/round.hpp"
#include "attack/served_store.hpp"
#include "oocarray/error.hpp"
#include "oocarray/file.hpp"
#include "support/pauses.hpp"

extern char** environ;

namespace ooc::attack {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t moved_file_count = 4;
constexpr std::size_t words_at_once = 8192;

/// What the processes of a round tell one another.
struct shared_state {
  struct progress {
    std::atomic<std::uint64_t> begun{0}, done{0};  ///< versions
  };
  std::array<progress, moved_file_count> files;
  std::atomic<bool> stop{false};
};

struct mapped_state {
  mapped_state()
      : at(::mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at == MAP_FAILED) throw std::bad_alloc();
    new (at) shared_state;
  }
  shared_state& operator*() const { return *static_cast<shared_state*>(at); }
  void* at;
};

struct plan {
  std::string url;
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> words;  ///< of each file

  std::uint64_t word(std::size_t file, std::uint64_t i, std::uint64_t version) const {
    std::uint64_t x = seed + (file + 1) * 0x9e3779b97f4a7c15u + i * 0xbf58476d1ce4e5b9u + version * 0x94d049bb133111ebu;
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    return x | 1;
  }
  static std::string name(std::size_t file) { return "f" + std::to_string(file); }
};

std::span<std::byte> bytes_of(std::vector<std::uint64_t>& v) { return std::as_writable_bytes(std::span(v)); }

void write_version(const plan& p, file& f, std::size_t k, std::uint64_t version) {
  std::vector<std::uint64_t> some;
  for (std::uint64_t at = 0; at < p.words[k]; at += some.size()) {
    some.resize(std::min<std::uint64_t>(words_at_once, p.words[k] - at));
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = p.word(k, at + i, version);
    f.write_at(at * 8, bytes_of(some));
  }
}

/// Opens them anew now and then; in between the moves find them open.
int write_on(const plan& p, shared_state& s, std::mt19937_64 dice) {
  const store st = store::open(p.url);
  std::array<std::optional<file>, moved_file_count> open;
  while (!s.stop) {
    const std::size_t k = dice() % p.words.size();
    auto& now = s.files[k];
    if (!open[k] || dice() % 4 == 0) open[k] = file::open(st, plan::name(k), file_access::read_write);
    const std::uint64_t version = ++now.begun;
    write_version(p, *open[k], k, version);
    if (dice() % 4 == 0) open[k]->sync();
    now.done = version;
  }
  return 0;
}

void check(const plan& p, std::size_t k, std::uint64_t at, const std::vector<std::uint64_t>& got, std::uint64_t oldest,
           std::uint64_t newest) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    bool known = false;
    for (std::uint64_t v = oldest; v <= newest && !known; ++v) known = got[i] == p.word(k, at + i, v);
    if (known) continue;
    std::string what = "is no version of it";
    for (std::uint64_t v = 0; v < oldest; ++v)
      if (got[i] == p.word(k, at + i, v)) what = "is version " + std::to_string(v);
    throw finding(verdict::wrong, plan::name(k) + ": word " + std::to_string(at + i) + " " + what + ", not " +
                                      std::to_string(oldest) + " to " + std::to_string(newest));
  }
}

int read_on(const plan& p, shared_state& s, std::mt19937_64 dice) {
  const store st = store::open(p.url);
  std::vector<file> open;
  for (std::size_t k = 0; k < p.words.size(); ++k) open.push_back(file::open(st, plan::name(k)));
  std::vector<std::uint64_t> got;
  while (!s.stop) {
    const std::size_t k = dice() % p.words.size();
    got.resize(1 + dice() % std::min<std::uint64_t>(words_at_once, p.words[k]));
    const std::uint64_t at = dice() % (p.words[k] - got.size() + 1);
    const std::uint64_t oldest = s.files[k].done;
    open[k].read_at(at * 8, bytes_of(got));
    check(p, k, at, got, oldest, s.files[k].begun);
  }
  return 0;
}

/// A command, which may be killed after a while.  Its status; nothing: it was killed.
std::optional<int> run_for(const std::vector<std::string>& words, std::optional<milliseconds> life) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  for (const std::string& w : words) std::cout << w << " ";
  std::cout << (life ? "killed after " + std::to_string(life->count()) + " ms" : "") << std::endl;
  pid_t child = 0;
  if (::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) != 0)
    throw finding(verdict::failed, "a command cannot be started");
  if (life) {
    testing::random_pause(*life);
    ::kill(child, SIGKILL);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return std::nullopt;
}

/// The nodes of a store, which are in folders here or have servers.
class changing_store {
 public:
  explicit changing_store(round& r) : r_(r), nodes_(r.between(2, 4)) {
    if (r.one_in(2)) {
      served_.emplace(r.folder() / "store", nodes_);
      return;
    }
    for (std::uint64_t n = 0; n < nodes_; ++n) folders_.push_back((r.folder() / ("n" + std::to_string(n))).string());
    must_run({OOC_COMMAND, "--store", url(), "init"});
  }

  std::string url() const {
    if (served_) return served_->url();
    std::string text;
    for (const std::string& f : folders_) text += (text.empty() ? "local:" : ",") + f;
    return text;
  }
  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), {OOC_COMMAND, "--store", url()});
    return words;
  }

  /// Programs that have a local store open do not get to know its further folders.
  bool may_grow_now() const { return served_.has_value() && nodes_ < 6; }
  void grow(bool cut_short) {
    const auto life = cut_short ? std::optional(milliseconds(r_.between(0, 300))) : std::nullopt;
    if (served_) {
      const std::vector<std::string> words{OOC_COMMAND, "up", "--dir", (r_.folder() / "store").string(),
                                           "--nodes",   "+1"};
      if (run_for(words, life).value_or(0) != 0) throw finding(verdict::failed, "ooc up --nodes +1 has failed");
      if (life) must_run({OOC_COMMAND, "up", "--dir", (r_.folder() / "store").string()});
      nodes_ = nodes_there();
      return;
    }
    const std::string fresh = (r_.folder() / ("n" + std::to_string(nodes_))).string();
    if (life) (void)run_for(command({"add-node", fresh}), life);
    // Where it was killed the store may have the folder already.
    if (command_result c = run_command(command({"add-node", fresh})); c.status != 0 && !life)
      throw finding(verdict::failed, "ooc add-node: " + c.output);
    folders_.push_back(fresh);
    ++nodes_;
  }

  void move_something() {
    const auto life = r_.one_in(2) ? std::optional(milliseconds(r_.between(0, 400))) : std::nullopt;
    const std::string node = std::to_string(r_.between(0, nodes_ - 1));
    switch (r_.between(0, 3)) {
      case 0: return run(command({"drain", "-q", node}), life);
      case 1: return run(command({"drain", "--undo", node}), life);
      default: {
        std::vector<std::string> words{"restripe", "-q"};
        if (r_.one_in(2)) words.insert(words.end(), {"--sf", std::to_string(4096 * r_.between(1, 40))});
        if (r_.one_in(2)) words.insert(words.end(), {"--nn", std::to_string(r_.between(1, nodes_))});
        for (std::size_t k = 0; k < moved_file_count; ++k)
          if (r_.one_in(2)) words.push_back(plan::name(k));
        return run(command(std::move(words)), life);
      }
    }
  }

  /// A node that can be emptied is; then its folder goes, and nobody misses it.
  void empty_one() {
    const std::string node = std::to_string(nodes_ - 1);
    (void)run_command(command({"drain", "--undo", "0"}));
    const command_result c = run_command(command({"drain", "-q", node}));
    std::cout << "drain " << node << ": " << c.output << std::endl;
    const bool retired_before = c.output.find("is empty, and retired") != std::string::npos;
    if (c.output.find("is the last one that takes new files") != std::string::npos) return;
    if (c.status != 0 && !retired_before) throw finding(verdict::failed, "ooc drain " + node + ": " + c.output);
    if (!served_) {
      std::filesystem::remove_all(folders_.back());
      return;
    }
    served_->down();
    std::filesystem::remove_all(r_.folder() / "store" / ("iod-" + node));
    served_->up();
  }

 private:
  /// It may be refused: programs write the files, and nodes may be retired.
  static void run(const std::vector<std::string>& words, std::optional<milliseconds> life) {
    if (const auto status = run_for(words, life); status.value_or(0) > 1)
      throw finding(verdict::failed, words[3] + " has ended with status " + std::to_string(*status));
  }
  std::uint64_t nodes_there() const {
    std::uint64_t n = 0;
    while (std::filesystem::exists(r_.folder() / "store" / ("iod-" + std::to_string(n)))) ++n;
    return n;
  }

  round& r_;
  std::uint64_t nodes_;
  std::vector<std::string> folders_;
  std::optional<served_store> served_;
};

void check_all(const plan& p, const shared_state& s, const std::string& url) {
  const store st = store::open(url);
  for (std::size_t k = 0; k < p.words.size(); ++k) {
    std::vector<std::uint64_t> all(p.words[k]);
    file::open(st, plan::name(k)).read_at(0, bytes_of(all));
    check(p, k, 0, all, s.files[k].done, s.files[k].begun);
  }
}

}  // namespace

void moved_files(round& r) {
  changing_store nodes(r);
  const mapped_state state;
  shared_state& s = *state;
  plan p{nodes.url(), r.dice()(), {}};
  {
    const store st = store::open(p.url);
    for (std::size_t k = 0; k < moved_file_count; ++k) {
      p.words.push_back(r.between(1, r.one_in(2) ? 3000 : 300'000));
      file f = file::create(st, plan::name(k), {.size = p.words[k] * 8});
      write_version(p, f, k, 0);
    }
  }
  if (r.one_in(2)) nodes.grow(r.one_in(2));
  p.url = nodes.url();
  const std::uint64_t dice = r.dice()();
  std::vector<pid_t> programs;
  programs.push_back(r.in_child([&] { return write_on(p, s, std::mt19937_64(dice)); }));
  for (std::uint64_t n = 1; n <= 2; ++n)
    programs.push_back(r.in_child([&] { return read_on(p, s, std::mt19937_64(dice + n)); }));
  for (std::uint64_t n = r.between(3, 10); n > 0; --n) {
    nodes.move_something();
    if (nodes.may_grow_now() && r.one_in(4)) nodes.grow(r.one_in(2));
    testing::random_pause(milliseconds(r.between(0, 200)));
  }
  s.stop = true;
  for (const pid_t one : programs)
    if (const int status = r.wait_for(one, seconds(100), "a program whose files are moved"))
      throw finding(verdict::failed, "a program whose files are moved ended with status " + std::to_string(status));
  check_all(p, s, nodes.url());
  nodes.empty_one();
  check_all(p, s, nodes.url());
  verify_store(nodes.url(), false);
}

}  // namespace ooc::attack
