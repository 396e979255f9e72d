// Random operations on a mounted store and on a folder of the local file system: both answer the same.
#include <dirent.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "mounted.hpp"
#include "support/random_seed.hpp"

using namespace ooc;
using namespace ooc::testing;

namespace {

/// The answer of a call: its result or errno, and bytes.
struct reply {
  long result = 0;
  std::string bytes;
  bool operator==(const reply&) const = default;
};

reply said(long result, std::string bytes = "") { return {result < 0 ? -long{errno} : result, std::move(bytes)}; }

/// One side: a folder, and files in it that are open.
struct side {
  fs::path root;
  std::map<int, int> open{};  // slot -> descriptor

  std::string path(const std::string& name) const { return (root / name).string(); }
  ~side() {
    for (const auto& [slot, fd] : open) ::close(fd);
  }
};

using operation = std::function<reply(side&)>;

struct generator {
  std::mt19937_64 engine;

  std::uint64_t number(std::uint64_t low, std::uint64_t high) { return between(engine, low, high); }
  std::string name() {
    const std::string leaf = std::string(1, static_cast<char>('a' + number(0, 4)));
    return number(0, 2) == 0 ? "d" + std::to_string(number(0, 1)) + "/" + leaf : leaf;
  }
  std::string folder() { return "d" + std::to_string(number(0, 1)); }
  std::string bytes(std::size_t n) {
    std::string s(n, '\0');
    for (char& c : s) c = static_cast<char>(engine());
    return s;
  }
  std::uint64_t offset() {
    constexpr std::uint64_t near[] = {0, 1, 4095, 4096, 4097, 65536, 262143, 300000, 524288, 1000000};
    return near[number(0, 9)] + number(0, 5);
  }
  std::size_t length() {
    constexpr std::size_t sizes[] = {1, 100, 4096, 5000, 70000, 300000};
    return sizes[number(0, 5)];
  }

  std::pair<std::string, operation> next() {
    const int slot = static_cast<int>(number(0, 3));
    const std::string a = name(), b = name();
    switch (number(0, 19)) {
      case 0:
      case 1:
      case 2: {
        constexpr int flags[] = {O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_TRUNC, O_RDWR, O_RDWR | O_CREAT | O_EXCL,
                                 O_RDWR | O_APPEND | O_CREAT};
        const int f = flags[number(0, 4)];
        return {"open " + a + " " + std::to_string(f), [=](side& s) {
                  const int fd = ::open(s.path(a).c_str(), f, 0640);
                  const reply r = said(fd < 0 ? -1 : 0);
                  if (fd < 0) return r;
                  if (s.open.count(slot) != 0) ::close(s.open[slot]);
                  s.open[slot] = fd;
                  return r;
                }};
      }
      case 3:
      case 4:
      case 5:
      case 6: {
        const std::uint64_t at = offset();
        const std::string data = bytes(length());
        return {"write slot " + std::to_string(slot) + " at " + std::to_string(at) + " " + std::to_string(data.size()),
                [=](side& s) {
                  if (s.open.count(slot) == 0) return reply{};
                  return said(::pwrite(s.open[slot], data.data(), data.size(), static_cast<off_t>(at)));
                }};
      }
      case 7:
      case 8:
      case 9: {
        const std::uint64_t at = offset();
        const std::size_t n = length();
        return {"read slot " + std::to_string(slot) + " at " + std::to_string(at) + " " + std::to_string(n),
                [=](side& s) {
                  if (s.open.count(slot) == 0) return reply{};
                  std::string data(n, '\0');
                  const auto got = ::pread(s.open[slot], data.data(), n, static_cast<off_t>(at));
                  data.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
                  return said(got, data);
                }};
      }
      case 10: {
        const std::uint64_t n = offset();
        return {"ftruncate slot " + std::to_string(slot) + " " + std::to_string(n), [=](side& s) {
                  return s.open.count(slot) == 0 ? reply{} : said(::ftruncate(s.open[slot], static_cast<off_t>(n)));
                }};
      }
      case 11:
        return {"fsync slot " + std::to_string(slot),
                [=](side& s) { return s.open.count(slot) == 0 ? reply{} : said(::fsync(s.open[slot])); }};
      case 12:
        return {"close slot " + std::to_string(slot), [=](side& s) {
                  if (s.open.count(slot) == 0) return reply{};
                  const int fd = s.open[slot];
                  s.open.erase(slot);
                  return said(::close(fd));
                }};
      case 13:
        return {"rename " + a + " " + b, [=](side& s) { return said(::rename(s.path(a).c_str(), s.path(b).c_str())); }};
      case 14: return {"unlink " + a, [=](side& s) { return said(::unlink(s.path(a).c_str())); }};
      case 15:
        return {"link " + a + " " + b, [=](side& s) { return said(::link(s.path(a).c_str(), s.path(b).c_str())); }};
      case 16: {
        const std::string d = folder();
        const bool make = number(0, 3) != 0;
        return {(make ? "mkdir " : "rmdir ") + d,
                [=](side& s) { return said(make ? ::mkdir(s.path(d).c_str(), 0755) : ::rmdir(s.path(d).c_str())); }};
      }
      case 17:
        return {"symlink " + b + " " + a, [=](side& s) {
                  const reply r = said(::symlink(b.c_str(), s.path(a).c_str()));
                  char target[300];
                  const auto n = ::readlink(s.path(a).c_str(), target, sizeof target);
                  return n < 0 ? r : reply{r.result, std::string(target, static_cast<std::size_t>(n))};
                }};
      case 18: {
        const std::uint64_t at = offset();
        const std::string data = bytes(200);
        return {"map slot " + std::to_string(slot) + " at " + std::to_string(at), [=](side& s) {
                  struct stat st {};
                  if (s.open.count(slot) == 0 || ::fstat(s.open[slot], &st) != 0 ||
                      static_cast<std::uint64_t>(st.st_size) < at + data.size())
                    return reply{};
                  void* const p = ::mmap(nullptr, static_cast<std::size_t>(st.st_size), PROT_READ | PROT_WRITE,
                                         MAP_SHARED, s.open[slot], 0);
                  if (p == MAP_FAILED) return said(-1);
                  std::string before(static_cast<char*>(p) + at, data.size());
                  std::memcpy(static_cast<char*>(p) + at, data.data(), data.size());
                  ::munmap(p, static_cast<std::size_t>(st.st_size));
                  return said(0, before);
                }};
      }
      default: {
        const mode_t mode = static_cast<mode_t>(number(0, 0777)) | 0600;
        return {"chmod " + a, [=](side& s) { return said(::chmod(s.path(a).c_str(), mode)); }};
      }
    }
  }
};

/// Names, types, sizes, modes, links and contents below a folder.
std::map<std::string, std::string> tree(const fs::path& root) {
  std::map<std::string, std::string> all;
  for (auto i = fs::recursive_directory_iterator(root); i != fs::recursive_directory_iterator(); ++i) {
    struct stat st {};
    if (::lstat(i->path().c_str(), &st) != 0) throw std::runtime_error(i->path().string());
    std::string text = std::to_string(st.st_mode);
    if (S_ISLNK(st.st_mode)) text += " -> " + fs::read_symlink(i->path()).string();
    if (S_ISREG(st.st_mode))
      text += " " + std::to_string(st.st_nlink) + " " + std::to_string(st.st_size) + " " +
              std::to_string(std::hash<std::string>()(contents(i->path())));
    all[i->path().lexically_relative(root).string()] = text;
  }
  return all;
}

void compare_randomly(bool served, const std::string& options, int count) {
  const std::uint64_t seed = random_seed("mount");
  mountable_store store(served);
  auto mount = std::make_unique<mount_process>(store.url, store.folder / "mount", options);
  fs::create_directories(store.folder / "model");
  generator g{std::mt19937_64(seed)};
  {
    side real{mount->folder()}, model{store.folder / "model"};
    std::string log;
    for (int i = 0; i < count; ++i) {
      const auto [name, f] = g.next();
      log += name + "\n";
      const reply a = f(real), b = f(model);
      if (a == b) continue;
      INFO("seed " << seed << ", operation " << i << ":\n" << log);
      CHECK(a.result == b.result);
      REQUIRE(a.bytes == b.bytes);
      REQUIRE(a.result == b.result);
    }
    CHECK(tree(mount->folder()) == tree(store.folder / "model"));
  }
  CHECK(mount->stop() == 0);
  mount = std::make_unique<mount_process>(store.url, store.folder / "mount", options);
  CHECK(tree(mount->folder()) == tree(store.folder / "model"));
  CHECK(mount->stop() == 0);
  const auto verified = run_command(OOC_COMMAND " --store " + store.url + " verify", store.folder / "verify");
  INFO(verified.out << verified.err);
  CHECK(verified.status == 0);
}

}  // namespace

TEST_CASE("random operations on an embedded store are those on a folder") {
  if (can_mount()) compare_randomly(false, "", 600);
}

TEST_CASE("random operations are the same where the kernel caches writes") {
  if (can_mount()) compare_randomly(false, "single", 300);
}

#ifdef OOC_WITH_SERVERS
TEST_CASE("random operations on a served store are those on a folder") {
  if (can_mount()) compare_randomly(true, "", 300);
}
#endif
