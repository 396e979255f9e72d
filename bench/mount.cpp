// Programs that read and write a store through `ooc mount`, beside ooc::file and beside a mount that passes a tmpfs on.
//
//     KIND_write, KIND_read    a file of --memory (256 MiB) in calls of 1 MiB, written over until it is acknowledged
//                              (closed), not by the first to open it for writing, and read: time through the mount /
//                              (ooc::file + the tmpfs through FUSE)
//     KIND_read_4k             the same of reads of 4 KiB, in random order
//     KIND_append_over_overwrite    a new file in calls of 1 MiB, until it is closed / written over
//     KIND_native_over_mount   ooc::file, time / that of the mount, of reads and writes in calls of 1 MiB
//
// KIND is `embedded` (two folders) or `served` (two I/O servers on this machine).  Of the store that OOC_BENCH_STORE
// names, for example one behind slow links, it is `given`, and there is no other.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <system_error>

#include "measure/child.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/pass_through.hpp"
#include "measure/scratch.hpp"
#include "measure/served_store.hpp"
#include "measure/stopwatch.hpp"
#include "oocarray/file.hpp"

namespace bench {
namespace {

using namespace ooc::literals;

constexpr std::size_t call = 1_MiB, small_call = 4_KiB, small_calls = 4000;

class ooc_mount {
 public:
  ooc_mount(const std::string& url, std::filesystem::path folder) : folder_(std::move(folder)) {
    const dev_t before = device_of(folder_);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::execl(OOC_COMMAND, "ooc", "mount", "-f", url.c_str(), folder_.c_str(), nullptr);
      ::_exit(127);
    }
    if (!is_mounted_soon(folder_, before)) throw std::runtime_error("mount: " + url + " cannot be mounted");
  }
  ~ooc_mount() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  ooc_mount(const ooc_mount&) = delete;
  ooc_mount& operator=(const ooc_mount&) = delete;

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
};

void require(bool done, const char* what) {
  if (!done) throw std::system_error(errno, std::generic_category(), std::string("mount: ") + what);
}

std::vector<std::byte> some_bytes() {
  std::vector<std::byte> b(call);
  std::mt19937_64 dice(1);
  for (auto& x : b) x = static_cast<std::byte>(dice());
  return b;
}

double write_file(const std::filesystem::path& path, std::uint64_t bytes, int flags) {
  const auto b = some_bytes();
  return seconds_of([&] {
    const int fd = ::open(path.c_str(), O_WRONLY | flags, 0644);
    require(fd >= 0, "open");
    for (std::uint64_t at = 0; at < bytes; at += call)
      require(::write(fd, b.data(), call) == static_cast<ssize_t>(call), "write");
    require(::close(fd) == 0, "close");
  });
}

/// The first to open a new file for writing makes durable what it has: not a part of writing over it.
void open_to_write(const std::filesystem::path& path) { write_file(path, 0, 0); }

double read_file(const std::filesystem::path& path, std::uint64_t bytes) {
  std::vector<std::byte> b(call);
  const int fd = ::open(path.c_str(), O_RDONLY);  // what the kernel had of it is forgotten
  require(fd >= 0, "open");
  const double s = seconds_of([&] {
    for (std::uint64_t at = 0; at < bytes; at += call)
      require(::read(fd, b.data(), call) == static_cast<ssize_t>(call), "read");
  });
  ::close(fd);
  return s;
}

std::vector<std::uint64_t> small_places(std::uint64_t bytes) {
  std::mt19937_64 dice(7);
  std::vector<std::uint64_t> places(small_calls);
  for (auto& p : places) p = dice() % (bytes / small_call) * small_call;
  return places;
}

double read_small(const std::filesystem::path& path, std::uint64_t bytes) {
  std::vector<std::byte> b(small_call);
  const int fd = ::open(path.c_str(), O_RDONLY);
  require(fd >= 0, "open");
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  const auto places = small_places(bytes);
  const double s = seconds_of([&] {
    for (const std::uint64_t at : places)
      require(::pread(fd, b.data(), small_call, static_cast<off_t>(at)) == static_cast<ssize_t>(small_call), "pread");
  });
  ::close(fd);
  return s;
}

/// The same by ooc::file: seconds of write, read and read_4k.
json natively(const std::string& url, std::uint64_t bytes) {
  return in_child(0, [&] {
    const auto store = ooc::store::open(url);
    const auto b = some_bytes();
    std::vector<std::byte> in(call);
    json out;
    out["write"] = seconds_of([&] {
      auto f = ooc::file::open(store, "file", ooc::file_access::read_write);
      for (std::uint64_t at = 0; at < bytes; at += call) f.write_at(at, b);
    });
    const auto f = ooc::file::open(store, "file");
    out["read"] = seconds_of([&] {
      for (std::uint64_t at = 0; at < bytes; at += call) f.read_at(at, in);
    });
    in.resize(small_call);
    const auto places = small_places(bytes);
    out["read_4k"] = seconds_of([&] {
      for (const std::uint64_t at : places) f.read_at(at, in);
    });
    return out;
  });
}

void measure(const std::string& kind, const std::string& url, const options& o, json& out) {
  const std::uint64_t bytes = o.memory_or(256_MiB);
  const auto passed = fresh_folder(o.dir, "passed"), mounted = fresh_folder(o.dir, "mounted");
  scratch_folder memory("/dev/shm");
  require_space(memory.path(), bytes);
  paired_ratio write(kind + "_write"), read(kind + "_read"), small(kind + "_read_4k"),
      append(kind + "_append_over_overwrite"), native_write(kind + "_native_over_mount_write"),
      native_read(kind + "_native_over_mount_read"), write_speed(kind + "_write_mib_per_s"),
      read_speed(kind + "_read_mib_per_s");
  const pass_through other(memory.path(), passed);
  const ooc_mount ours(url, mounted);
  write_file(passed / "file", bytes, O_CREAT);
  const double mib = static_cast<double>(bytes) / (1 << 20);
  for (unsigned k = 0; k < o.rounds_or(5); ++k) {
    ::unlink((mounted / "file").c_str());
    const double appended = write_file(mounted / "file", bytes, O_CREAT);
    open_to_write(mounted / "file");
    const double w = write_file(mounted / "file", bytes, 0), pw = write_file(passed / "file", bytes, 0);
    const double r = read_file(mounted / "file", bytes), pr = read_file(passed / "file", bytes);
    const double s = read_small(mounted / "file", bytes), ps = read_small(passed / "file", bytes);
    const json n = natively(url, bytes);
    write.add(w, n["write"].get<double>() + pw);
    read.add(r, n["read"].get<double>() + pr);
    small.add(s, n["read_4k"].get<double>() + ps);
    append.add(appended, w);
    native_write.add(n["write"].get<double>(), w);
    native_read.add(n["read"].get<double>(), r);
    write_speed.add(mib, w);
    read_speed.add(mib, r);
  }
  for (const paired_ratio* p : {&write, &read, &small, &append, &native_write, &native_read, &write_speed, &read_speed})
    p->put(out);
  ::unlink((mounted / "file").c_str());
}

}  // namespace

json run_mount(const options& o) {
  json out;
  if (const char* const given = std::getenv("OOC_BENCH_STORE")) {
    measure("given", given, o, out);
    return out;
  }
  require_space(o.dir, 4 * o.memory_or(256_MiB));
  const auto disks = fresh_folder(o.dir, "disks");
  const std::string url = "local:" + (disks / "n0").string() + "," + (disks / "n1").string();
  in_child(0, [&] {
    (void)ooc::store::open(url);
    return json::object();
  });
  measure("embedded", url, o, out);
  const auto store = std::make_unique<served_store>(fresh_folder(o.dir, "served"), 2);
  measure("served", store->url(), o, out);
  return out;
}

}  // namespace bench
