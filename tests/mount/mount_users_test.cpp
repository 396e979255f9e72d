// Two mounts, a program with ooc::file, one with an array and one with MPI-IO use the same files of one store at once,
// beside a model in memory.
//
// The test goes in rounds.  In a round all users work at the same time, each on bytes that are his alone in this round;
// he also reads bytes that nobody changes.  What he then closes, syncs or writes back, the others must find when they
// open the file in the next round.  Files that one user has for himself are cut off, made longer, or replaced by
// others.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "mounted.hpp"
#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "support/random_seed.hpp"
#include "support/rounds.hpp"
#ifdef OOC_WITH_MPI_IO
#include "mpiio/stored_file.hpp"
#endif

using namespace ooc;
using namespace ooc::testing;

namespace {

constexpr std::size_t array_bytes = 600'000, greatest_file = 3'000'000;
const std::array<std::string, 4> file_names{"array", "f1", "f2", "f3"};

struct file_bytes {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
};

[[noreturn]] void failed_call(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

/// One who uses files of the store.  Each call is on the file as it was opened last.
class store_user {
 public:
  virtual ~store_user() = default;
  virtual bool uses(std::size_t file) const { return file < file_names.size(); }
  virtual bool replaces() const { return true; }
  /// Finds what others have closed or synced.
  virtual void open(std::size_t file) = 0;
  virtual std::uint64_t size(std::size_t file) = 0;
  virtual void write(std::size_t file, std::uint64_t at, const std::string& bytes) = 0;
  /// Whole pages that nobody else changes.
  virtual void write_mapped(std::size_t file, std::uint64_t at, const std::string& bytes) { write(file, at, bytes); }
  virtual std::string read(std::size_t file, std::uint64_t at, std::size_t n) = 0;
  virtual void resize(std::size_t file, std::uint64_t size) = 0;
  /// Another file with these bytes takes the name.
  virtual void replace(std::size_t file, const std::string& bytes) = 0;
  /// Others may find what was written from here on; the file may stay open.
  virtual void meet(std::size_t file, bool keep_open) = 0;
  virtual void let_go(std::size_t file) = 0;
};

class mount_user : public store_user {
 public:
  explicit mount_user(fs::path folder) : folder_(std::move(folder)) {}
  ~mount_user() override {
    for (const auto& [file, fd] : open_) ::close(fd);
  }
  void open(std::size_t file) override {
    const int fd = ::open(path(file).c_str(), O_RDWR);
    if (fd < 0) failed_call("open");
    let_go(file);
    open_[file] = fd;
  }
  std::uint64_t size(std::size_t file) override {
    struct stat st {};
    if (::fstat(open_.at(file), &st) != 0) failed_call("fstat");
    return static_cast<std::uint64_t>(st.st_size);
  }
  void write(std::size_t file, std::uint64_t at, const std::string& bytes) override {
    if (::pwrite(open_.at(file), bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size()))
      failed_call("pwrite");
  }
  void write_mapped(std::size_t file, std::uint64_t at, const std::string& bytes) override {
    void* const p =
        ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_SHARED, open_.at(file), static_cast<off_t>(at));
    if (p == MAP_FAILED) failed_call("mmap");
    std::memcpy(p, bytes.data(), bytes.size());
    ::munmap(p, bytes.size());
  }
  std::string read(std::size_t file, std::uint64_t at, std::size_t n) override {
    std::string bytes(n, '\0');
    const auto got = ::pread(open_.at(file), bytes.data(), n, static_cast<off_t>(at));
    if (got < 0) failed_call("pread");
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
  void resize(std::size_t file, std::uint64_t size) override {
    if (::ftruncate(open_.at(file), static_cast<off_t>(size)) != 0) failed_call("ftruncate");
  }
  void replace(std::size_t file, const std::string& bytes) override {
    const fs::path other = path(file).string() + ".new";
    const int fd = ::open(other.c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
    if (fd < 0) failed_call("open " + other.string());
    let_go(file);
    open_[file] = fd;
    write(file, 0, bytes);
    if (::rename(other.c_str(), path(file).c_str()) != 0) failed_call("rename");
  }
  void meet(std::size_t file, bool keep_open) override {
    if (!keep_open) return let_go(file);
    if (::fsync(open_.at(file)) != 0) failed_call("fsync");
  }
  void let_go(std::size_t file) override {
    const auto i = open_.find(file);
    if (i == open_.end()) return;
    const int fd = i->second;
    open_.erase(i);
    if (::close(fd) != 0) failed_call("close");
  }

 private:
  fs::path path(std::size_t file) const { return folder_ / file_names[file]; }

  const fs::path folder_;
  std::map<std::size_t, int> open_;
};

class native_user : public store_user {
 public:
  explicit native_user(const std::string& url) : store_(ooc::store::open(url)) {}
  void open(std::size_t file) override {
    open_.insert_or_assign(file, ooc::file::open(store_, file_names[file], file_access::read_write));
  }
  std::uint64_t size(std::size_t file) override { return open_.at(file).size(); }
  void write(std::size_t file, std::uint64_t at, const std::string& bytes) override {
    open_.at(file).write_at(at, std::as_bytes(std::span(bytes)));
  }
  std::string read(std::size_t file, std::uint64_t at, std::size_t n) override {
    std::string bytes(n, '\0');
    bytes.resize(open_.at(file).read_at(at, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  }
  void resize(std::size_t file, std::uint64_t size) override { open_.at(file).truncate(size); }
  void replace(std::size_t file, const std::string& bytes) override {
    const std::string other = file_names[file] + ".new";
    open_.insert_or_assign(file, ooc::file::create(store_, other, {.sparse = bytes.size() % 2 == 0}));
    write(file, 0, bytes);
    store_.core()->replace(other, file_names[file]);
  }
  void meet(std::size_t file, bool keep_open) override {
    if (keep_open) open_.at(file).sync();
    if (!keep_open) let_go(file);
  }
  void let_go(std::size_t file) override { open_.erase(file); }

 private:
  ooc::store store_;
  std::map<std::size_t, ooc::file> open_;
};

#ifdef OOC_WITH_MPI_IO
/// The work of the components of MPI-IO for a rank.
class mpi_io_user : public store_user {
 public:
  explicit mpi_io_user(const std::string& url) : store_(ooc::store::open(url)) {}
  ~mpi_io_user() override {
    while (!open_.empty()) let_go(open_.begin()->first);
  }
  bool replaces() const override { return false; }
  void open(std::size_t file) override {
    let_go(file);
    open_[file] = mpiio::stored_file::open(store_, {.path = file_names[file], .write = true});
  }
  std::uint64_t size(std::size_t file) override { return open_.at(file)->size(); }
  void write(std::size_t file, std::uint64_t at, const std::string& bytes) override {
    const auto e = extent(const_cast<char*>(bytes.data()), at, bytes.size());
    if (open_.at(file)->write({&e, 1}, false)->wait() != bytes.size()) throw std::runtime_error("a short write");
  }
  std::string read(std::size_t file, std::uint64_t at, std::size_t n) override {
    std::string bytes(n, '\0');
    const auto e = extent(bytes.data(), at, n);
    bytes.resize(open_.at(file)->read({&e, 1}, false)->wait());
    return bytes;
  }
  void resize(std::size_t file, std::uint64_t size) override { open_.at(file)->resize(size); }
  void replace(std::size_t, const std::string&) override {}
  void meet(std::size_t file, bool keep_open) override {
    if (keep_open) open_.at(file)->sync();
    if (!keep_open) let_go(file);
  }
  void let_go(std::size_t file) override {
    const auto i = open_.find(file);
    if (i == open_.end()) return;
    i->second->leave();
    i->second->give_back();
    open_.erase(i);
  }

 private:
  static ooc_mpiio_extent extent(void* memory, std::uint64_t at, std::size_t n) {
    return {memory, reinterpret_cast<void*>(at), n};
  }

  ooc::store store_;
  std::map<std::size_t, std::shared_ptr<mpiio::stored_file>> open_;
};
#endif

/// An array stays open; it meets the others by writeback() and invalidate().
class array_user : public store_user {
 public:
  explicit array_user(const std::string& url)
      : runtime_({.memory = 16_MiB}),
        array_(runtime_, ooc::store::open(url), file_names[0], ooc::open, {.shared = true}) {}
  bool uses(std::size_t file) const override { return file == 0; }
  bool replaces() const override { return false; }
  void open(std::size_t) override { array_.invalidate(); }
  std::uint64_t size(std::size_t) override { return array_.extent(0); }
  void write(std::size_t, std::uint64_t at, const std::string& bytes) override {
    std::memcpy(array_.data() + at, bytes.data(), bytes.size());
  }
  std::string read(std::size_t, std::uint64_t at, std::size_t n) override { return {array_.data() + at, n}; }
  void resize(std::size_t, std::uint64_t) override {}
  void replace(std::size_t, const std::string&) override {}
  void meet(std::size_t, bool keep_open) override {
    array_.writeback(keep_open ? ooc::durable : durability::acknowledged);
  }
  void let_go(std::size_t) override {}

 private:
  ooc::runtime runtime_;
  ooc::ooc_array<char, 1> array_;
};

// What a user may do with a file in a round.
struct part_in_round {
  bool open = false;
  bool alone = false;
  bool others_grow = false;
  std::string now;  // what he finds, and what he makes of it
  std::vector<file_bytes> mine, quiet;
};

struct written {
  std::uint64_t at = 0;
  std::string bytes;
};

struct outcome_of_round {
  std::vector<written> writes;  // to a file that he shares
  std::string whole;            // the file that he had for himself
};

using engine = std::mt19937_64;

std::string random_text(engine& dice, std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; i += 8) {
    const std::uint64_t word = dice();
    std::memcpy(s.data() + i, &word, std::min<std::size_t>(8, n - i));
  }
  return s;
}

file_bytes random_part(engine& dice, const file_bytes& of, std::uint64_t most) {
  const std::uint64_t begin = between(dice, of.begin, of.end - 1);
  return {begin, begin + between(dice, 1, std::min(most, of.end - begin))};
}

void compare(const std::string& got, const std::string& wanted, std::uint64_t at, const std::string& what) {
  if (got == wanted) return;
  const auto differ = static_cast<std::uint64_t>(
      std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end()).first - got.begin());
  throw std::runtime_error(what + ": " + std::to_string(got.size()) + " bytes of " + std::to_string(wanted.size()) +
                           " from " + std::to_string(at) + "; the first wrong one is " + std::to_string(at + differ));
}

// The work of one user in a round; throws what went wrong.
struct player {
  store_user& user;
  engine dice;
  std::vector<part_in_round> parts;
  std::vector<outcome_of_round> done{file_names.size()};
  std::string log{};

  void play() {
    for (std::size_t f = 0; f < parts.size(); ++f)
      if (parts[f].open) begin(f);
    for (int i = 0; i < 10; ++i) {
      const auto f = static_cast<std::size_t>(between(dice, 0, parts.size() - 1));
      if (!parts[f].open) continue;
      if (parts[f].alone)
        act_alone(f);
      else
        act(f);
    }
    for (std::size_t f = 0; f < parts.size(); ++f) {
      if (!parts[f].open) continue;
      note("meet", f, 0, 0);
      user.meet(f, between(dice, 0, 2) == 0);
      if (parts[f].alone) done[f].whole = parts[f].now;
    }
  }

 private:
  void note(const std::string& what, std::size_t f, std::uint64_t at, std::uint64_t n) {
    log += what + " " + file_names[f] + " " + std::to_string(at) + " " + std::to_string(n) + "\n";
  }

  void begin(std::size_t f) {
    note("open", f, 0, 0);
    user.open(f);
    const std::uint64_t size = user.size(f), wanted = parts[f].now.size();
    if (size != wanted && !(parts[f].others_grow && size > wanted))
      throw std::runtime_error(file_names[f] + " has " + std::to_string(size) + " bytes when it is opened, not " +
                               std::to_string(wanted));
  }

  void write(std::size_t f, std::uint64_t at, const std::string& bytes, bool mapped) {
    note(mapped ? "write mapped" : "write", f, at, bytes.size());
    if (mapped)
      user.write_mapped(f, at, bytes);
    else
      user.write(f, at, bytes);
    std::string& now = parts[f].now;
    now.resize(std::max<std::size_t>(now.size(), at + bytes.size()));
    now.replace(at, bytes.size(), bytes);
    if (!parts[f].alone) done[f].writes.push_back({at, bytes});
  }

  void read(std::size_t f, const file_bytes& b) {
    note("read", f, b.begin, b.size());
    compare(user.read(f, b.begin, b.size()), parts[f].now.substr(b.begin, b.size()), b.begin, file_names[f]);
  }

  void act(std::size_t f) {
    part_in_round& p = parts[f];
    const std::uint64_t what = between(dice, 0, 9), most = between(dice, 0, 3) == 0 ? 1'500'000 : 20'000;
    if (what < 4 && !p.quiet.empty())
      return read(f, random_part(dice, p.quiet[between(dice, 0, p.quiet.size() - 1)], most));
    if (p.mine.empty()) return;
    const file_bytes own = p.mine[between(dice, 0, p.mine.size() - 1)];
    const std::uint64_t known = std::min<std::uint64_t>(own.end, p.now.size());
    if (what == 5 && own.begin < known) return read(f, random_part(dice, {own.begin, known}, most));
    const file_bytes pages{(own.begin + 4095) / 4096 * 4096, known / 4096 * 4096};
    if (what == 6 && pages.begin < pages.end) {
      const std::uint64_t page = between(dice, pages.begin / 4096, pages.end / 4096 - 1);
      return write(f, page * 4096, random_text(dice, 4096), true);
    }
    const file_bytes b = random_part(dice, own, most);
    if (what == 7) {  // in a row
      for (std::uint64_t at = b.begin; at < b.end; at += 100'000)
        write(f, at, random_text(dice, std::min<std::uint64_t>(100'000, b.end - at)), false);
      return;
    }
    write(f, b.begin, random_text(dice, b.size()), false);
  }

  void act_alone(std::size_t f) {
    std::string& now = parts[f].now;
    const std::uint64_t what = between(dice, 0, 9);
    if (what < 2) {
      const std::uint64_t size = between(dice, 0, greatest_file);
      note("resize", f, 0, size);
      user.resize(f, size);
      now.resize(size);
    } else if (what == 2 && user.replaces()) {
      now = random_text(dice, between(dice, 1, 300'000));
      note("replace", f, 0, now.size());
      user.replace(f, now);
    } else if (what < 6 && !now.empty()) {
      read(f, random_part(dice, {0, now.size()}, greatest_file));
    } else {
      const file_bytes b = random_part(dice, {0, greatest_file}, 200'000);
      write(f, b.begin, random_text(dice, b.size()), false);
    }
  }
};

// Who does what with which bytes in one round.
std::vector<player> deal_out(engine& dice, const std::vector<std::unique_ptr<store_user>>& users,
                             const std::vector<std::string>& model) {
  std::vector<player> players;
  for (const auto& u : users) players.push_back({*u, engine(dice()), std::vector<part_in_round>(model.size())});
  for (std::size_t f = 0; f < model.size(); ++f) {
    const std::string& now = model[f];
    if (f != 0 && between(dice, 0, 3) == 0) {
      auto i = between(dice, 0, users.size() - 1);
      while (!users[i]->uses(f)) i = (i + 1) % users.size();
      for (std::size_t other = 0; other < users.size(); ++other)
        if (other != i) users[other]->let_go(f);
      players[i].parts[f] = {true, true, false, now, {}, {}};
      continue;
    }
    const bool grows = f != 0 && between(dice, 0, 1) == 0;
    const std::uint64_t end =
        grows ? std::min<std::uint64_t>(now.size() + between(dice, 1, 1'500'000), greatest_file) : now.size();
    std::vector<file_bytes> quiet;
    std::vector<std::vector<file_bytes>> own(users.size());
    for (std::uint64_t at = 0; at < end;) {
      const std::uint64_t length = between(dice, 0, 2) == 0 ? between(dice, 1, 5000) : between(dice, 1, 400'000);
      const file_bytes b{at, std::min(at + length, end)};
      at = b.end;
      const auto i = between(dice, 0, users.size());
      if (i < users.size() && users[i]->uses(f))
        own[i].push_back(b);
      else if (b.begin < now.size())
        quiet.push_back({b.begin, std::min<std::uint64_t>(b.end, now.size())});
    }
    for (std::size_t i = 0; i < users.size(); ++i)
      if (users[i]->uses(f) && between(dice, 0, 5) != 0)
        players[i].parts[f] = {true, false, end > now.size(), now, own[i], quiet};
  }
  return players;
}

void all_together(bool served, int count) {
  const std::uint64_t seed = random_seed("mount_users");
  engine dice(seed);
  mountable_store s(served);
  std::vector<std::string> model{std::string(array_bytes, '\0'), "", "", ""};
  {
    ooc::runtime rt{{.memory = 16_MiB}};
    const ooc::ooc_array<char, 1> a(rt, ooc::store::open(s.url), file_names[0], ooc::create, {array_bytes});
  }
  mount_process first(s.url, s.folder / "first"), second(s.url, s.folder / "second");
  for (std::size_t f = 1; f < file_names.size(); ++f) descriptor(first / file_names[f], O_CREAT | O_WRONLY);

  std::vector<std::unique_ptr<store_user>> users;
  users.push_back(std::make_unique<mount_user>(first.folder()));
  users.push_back(std::make_unique<mount_user>(second.folder()));
  users.push_back(std::make_unique<native_user>(s.url));
  users.push_back(std::make_unique<array_user>(s.url));
#ifdef OOC_WITH_MPI_IO
  users.push_back(std::make_unique<mpi_io_user>(s.url));
#endif
  for (int round = 0; round < count; ++round) {
    INFO("seed " << seed << ", round " << round);
    auto players = deal_out(dice, users, model);
    std::vector<std::string> wrong(users.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < users.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          players[i].play();
        } catch (const std::exception& e) {
          wrong[i] = e.what();
        }
      });
    for (auto& t : threads) t.join();
    for (std::size_t i = 0; i < users.size(); ++i) {
      INFO("user " << i << ":\n" << players[i].log);
      CHECK(wrong[i] == "");
    }
    REQUIRE(std::all_of(wrong.begin(), wrong.end(), [](const std::string& w) { return w.empty(); }));
    for (const player& p : players)
      for (std::size_t f = 0; f < model.size(); ++f) {
        if (p.parts[f].alone) model[f] = p.done[f].whole;
        for (const written& w : p.done[f].writes) {
          model[f].resize(std::max<std::size_t>(model[f].size(), w.at + w.bytes.size()));
          model[f].replace(w.at, w.bytes.size(), w.bytes);
        }
      }
  }
  for (std::size_t f = 0; f < model.size(); ++f)
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (!users[i]->uses(f)) continue;
      INFO("seed " << seed << ", at the end: user " << i << ", " << file_names[f]);
      users[i]->open(f);
      REQUIRE(users[i]->size(f) == model[f].size());
      if (!model[f].empty()) CHECK_NOTHROW(compare(users[i]->read(f, 0, model[f].size()), model[f], 0, file_names[f]));
      users[i]->let_go(f);
    }
  users.clear();
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
  const auto verified = run_command(OOC_COMMAND " --store " + s.url + " verify", s.folder / "verify");
  INFO(verified.out << verified.err);
  CHECK(verified.status == 0);
}

}  // namespace

TEST_CASE(
    "two mounts, ooc::file, an array and MPI-IO on one embedded store read what the others have closed or synced") {
  if (can_mount()) all_together(false, rounds(10, 400));
}

#ifdef OOC_WITH_SERVERS
TEST_CASE("two mounts, ooc::file, an array and MPI-IO on one served store read what the others have closed or synced") {
  if (can_mount()) all_together(true, rounds(10, 400));
}
#endif
