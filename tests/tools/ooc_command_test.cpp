#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "oocarray/file.hpp"
#include "oocarray/ooc_array.hpp"
#include "storage/layout/npy.hpp"
#include "storage/service/store_core.hpp"
#include "support/shell.hpp"
#include "support/soon.hpp"

using namespace ooc::testing;
using namespace ooc::literals;
namespace fs = std::filesystem;

namespace {

std::string npy(const std::string& type, const std::vector<std::uint64_t>& shape, const std::string& data) {
  return ooc::storage::format_npy_header(type, shape) + data;
}

/// A .npy file whose header is this text.
std::string npy_with_header(std::string header, int version, const std::string& data) {
  const std::size_t prefix = version == 1 ? 10 : 12;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  std::string s("\x93NUMPY");
  s += static_cast<char>(version);
  s += '\0';
  for (std::size_t i = 0; i < prefix - 8; ++i) s += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return s + header + data;
}

struct particle {
  std::uint32_t id;
  float mass;
};

}  // namespace

template <>
struct ooc::element_type<particle> {
  static std::string name() { return "particle-v2"; }
};

TEST_CASE("help and version") {
  shell sh;
  CHECK(sh.ok("--version").starts_with("ooc "));
  CHECK(sh.ok("--help").find("export") != std::string::npos);
  for (const char* c : {"init", "ls", "stat", "mkdir", "mv", "rm", "import", "export", "attr", "info", "verify",
                        "keygen", "cp", "cat", "du", "truncate"}) {
    CHECK(sh.ok("--help").find(c) != std::string::npos);
    const std::string help = sh.ok(std::string(c) + " --help");
    CHECK(help.starts_with("Usage: ooc " + std::string(c)));
    CHECK(help.find("--store") != std::string::npos);
  }
}

TEST_CASE("a .npy file goes in and comes out byte for byte") {
  shell sh;
  const std::string file = npy("f8", {300, 500}, numbered(300 * 500 * 8));
  write(sh.folder / "a.npy", file);
  sh.ok("mkdir plate");
  sh.ok("import a.npy plate/a");
  sh.ok("export plate/a b.npy");
  CHECK(contents(sh.folder / "b.npy") == file);
  sh.ok("export --buffer 10000 plate/a c.raw");
  CHECK(contents(sh.folder / "c.raw") == numbered(300 * 500 * 8));
  CHECK(sh.ok("stat plate/a").find("f8 300x500") != std::string::npos);
  CHECK(sh.ok("ls plate") == "plate/a\n");
  CHECK(sh.ok("ls -l plate").find("f8 300x500") != std::string::npos);
  CHECK(sh.ok("stat --json plate/a").find("\"element_type\": \"f8\"") != std::string::npos);
  sh.ok("verify");
}

TEST_CASE("stat names the files with an array's bytes, which other programs can read there", "[local]") {
  shell sh;
  const std::string data = numbered(300 * 500 * 8);
  write(sh.folder / "a.npy", npy("f8", {300, 500}, data));
  sh.ok("import --nn 1 a.npy a");
  sh.ok("import --nn 2 a.npy b");
  const auto of_a = nlohmann::json::parse(sh.ok("stat --json a")).at("data");
  REQUIRE(of_a.size() == 1);
  const std::string file = of_a[0].at("file");
  CHECK(of_a[0].at("bytes") == data.size());
  CHECK(contents(file).starts_with(data));
  CHECK(sh.ok("stat a").find("bytes in  " + file + " (1200000)\n") != std::string::npos);
  const auto of_b = nlohmann::json::parse(sh.ok("stat --json b")).at("data");
  REQUIRE(of_b.size() == 2);
  CHECK(of_b[0].at("bytes").get<int>() + of_b[1].at("bytes").get<int>() == 1200000);
}

TEST_CASE("all three header versions and every element type are read") {
  shell sh;
  for (int version = 1; version <= 3; ++version) {
    write(sh.folder / "v.npy",
          npy_with_header("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", version, numbered(24)));
    const std::string name = "v" + std::to_string(version);
    sh.ok("import v.npy " + name);
    sh.ok("export " + name + " " + name);
    CHECK(contents(sh.folder / name) == numbered(24));
  }
  for (const char* type : {"f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "struct24"}) {
    const std::string file =
        npy(type, {480},
            numbered(480 * std::stoul(std::string(type).substr(std::string(type).find_first_of("123456789")))));
    write(sh.folder / "t.npy", file);
    sh.ok(std::string("import t.npy t-") + type);
    sh.ok(std::string("export -f t-") + type + " u.npy");
    CHECK(contents(sh.folder / "u.npy") == file);
  }
}

TEST_CASE("arrays without elements and without dimensions") {
  shell sh;
  write(sh.folder / "e.npy", npy("f4", {0, 5}, ""));
  sh.ok("import e.npy none");
  CHECK(sh.ok("stat none").find("f4 0x5\n") != std::string::npos);
  // A file that no array can be is not imported either.
  write(sh.folder / "e.npy", npy("f4", {5, 0}, ""));
  sh.refused("import e.npy e", "5x0");
  write(sh.folder / "e.npy", npy("f4", {1, 1, 1, 1, 1, 1, 1, 1, 2}, numbered(8)));
  sh.refused("import e.npy e", "9 dimensions");
  write(sh.folder / "s.npy",
        npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 1, numbered(8)));
  sh.ok("import s.npy s");
  CHECK(sh.ok("stat s").find("f8 1\n") != std::string::npos);
}

TEST_CASE("raw files need a type and a shape that fit") {
  shell sh;
  write(sh.folder / "r.bin", numbered(2400));
  sh.ok("import r.bin --type struct24 --shape 10x10 r");
  sh.ok("export r out.bin");
  CHECK(contents(sh.folder / "out.bin") == numbered(2400));
  sh.refused("import r.bin x", "--type");
  sh.refused("import r.bin x --type f8", "--shape");
  sh.refused("import r.bin x --type f3 --shape 300", "f3");
  sh.refused("import r.bin x --type f8 --shape 10x", "10x");
  sh.refused("import r.bin x --type f8 --shape 299", "2392");
  sh.refused("import r.bin x --type f8 --shape 301", "copy it again");
  sh.refused("import r.bin x --type f8 --shape 4294967296x4294967296", "2^63");
  sh.refused("import r.bin x --type f8 --shape 99999999999999999999", "not a shape");
  sh.refused("import r.bin x --type f8 --shape 300 --transpose", "give --shape its numbers reversed");
}

TEST_CASE("options of import that would do nothing are refused") {
  shell sh;
  write(sh.folder / "r", numbered(24));
  const std::string rows = " --type f4 --shape 3x2 ";
  sh.refused("import r x --max-extents 2" + rows, "--max-extents: '2' is below the extents of 'x', 3x2");
  sh.refused("import r x --tile 2 --max-extents 2 --type f4 --shape 6", "--max-extents: '2' is below");
  sh.refused("import r x --tile 2x2 --max-extents 3x1" + rows, "--max-extents: '3x1' is below");
  sh.ok("import -q r a --max-extents 3" + rows);
  sh.ok("import -q r b --max-extents 6" + rows);
  sh.refused("import r b --append --commits" + rows, "--commits is for a new array");
  sh.refused("import r b --at 0,0 --commits" + rows, "--commits is for a new array");
  sh.ok("import -q r b --append" + rows);
}

TEST_CASE("an option that is no number is refused with what is given and what is expected") {
  shell sh;
  std::ofstream(sh.folder / "r.bin") << "12345678";
  sh.refused("picture x x.png --size 1.5", "--size: '1.5' is not a whole number from 0 to 4294967295");
  sh.refused("picture x x.png --size -1", "--size: '-1' is not a whole number");
  sh.refused("picture x x.png --size 4294967296", "--size: '4294967296' is not a whole number");
  sh.refused("import x.npy x --nn two", "--nn: 'two' is not a whole number");
  sh.refused("top -i often", "--interval: 'often' is not a number; write for instance 0.5");
  sh.refused("import r.bin x --type f8 --shape 10x-1", "--shape: '10x-1' is not a shape");
  sh.refused("truncate x --size 1.5", "--size: '1.5' is not a size");
}

TEST_CASE("what a .npy header says and we cannot store is refused with a remedy") {
  shell sh;
  const auto header = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy_with_header("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", 1,
                           numbered(48));
  };
  write(sh.folder / "x.npy", header("'|O'", "False", "(2, 3)"));
  sh.refused("import x.npy x", "objects");
  write(sh.folder / "x.npy", header("'|T16'", "False", "(3,)"));
  sh.refused("import x.npy x", "variable length");
  write(sh.folder / "x.npy", header("'<f3'", "False", "(16,)"));
  sh.refused("import x.npy x", "astype");
  write(sh.folder / "x.npy", header("[('a', '|O')]", "False", "(6,)"));
  sh.refused("import x.npy x", "objects");
  write(sh.folder / "x.npy", header("'<f8'", "True", "(2, 3)"));
  sh.ok("import --transpose x.npy x");
  CHECK(sh.ok("stat x").find("f8 3x2") != std::string::npos);
  write(sh.folder / "x.npy", header("'<f8'", "False", "(2, 4)"));
  sh.refused("import x.npy y", "64");
  for (const std::string& bad :
       {std::string(), std::string("\x93NUMPY"), std::string("PK\x03\x04 not an array at all"),
        header("'<f8'", "False", "(2, 3)").substr(0, 40), header("'<f8'", "Maybe", "(2, 3)"),
        header("'<f8'", "False", "(2, -3)"), header("'<f8'", "False", "(2 3)"), header("'<f8", "False", "(2, 3)"),
        header("'<f8'", "False", "(4611686018427387904, 8)"), npy_with_header("{'descr': '<f8'}", 1, ""),
        npy_with_header("nonsense", 1, ""),
        npy_with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (6,), } junk", 1, numbered(48)),
        npy_with_header("{}", 4, "")}) {
    write(sh.folder / "x.npy", bad);
    sh.refused("import x.npy y", "x.npy");
    sh.refused("import x.npy y", "; ");  // what to do about it
  }
}

TEST_CASE("a type with a name of its own goes out with its fields where the attribute dtype describes them") {
  shell sh;
  {
    auto store = sh.store();
    ooc::runtime rt{{.memory = 8_MiB}};
    ooc::ooc_array<particle, 1> a{rt, store, "a", ooc::create, {2}};
    a[0] = particle{7, 1.5f};
  }
  const std::string fields = "[('id', '<u4'), ('mass', '<f4')]";
  sh.ok("attr set a dtype \"" + fields + "\"");
  sh.ok("export -q a a.npy");
  CHECK(contents(sh.folder / "a.npy").find("{'descr': " + fields + ", 'fortran_order'") != std::string::npos);
  const outcome h5 = sh.run("export -q a a.h5");
  if (h5.err.find("built without HDF5") == h5.err.npos) {
    CHECK(h5.status == 0);
    sh.ok("import -q a.h5 b");
    CHECK(sh.ok("attr get b") == "dtype=" + fields + "\n");
  }
  sh.ok("attr set a dtype \"'<f4'\"");
  sh.refused("export -q a b.npy", "describes elements of 4 bytes, and there are 8");
  sh.ok("attr rm a dtype");
  sh.ok("export -q a b.npy");
  CHECK(contents(sh.folder / "b.npy").find("'|V8'") != std::string::npos);
}

TEST_CASE("a tiled array comes out row-major through a small buffer") {
  shell sh;
  const std::string data = numbered(70 * 45 * 33 * 4);
  write(sh.folder / "t.npy", npy("i4", {70, 45, 33}, data));
  sh.ok("import --tile 16x16x8 --sf 4096 t.npy t");
  CHECK(sh.ok("stat t").find("tiles of 16x16x8") != std::string::npos);
  for (const char* buffer : {"4096", "5000", "100000", "300KiB", "64MiB"}) {
    sh.ok(std::string("export -f --buffer ") + buffer + " t out.npy");
    CHECK(contents(sh.folder / "out.npy") == contents(sh.folder / "t.npy"));
  }
  // The worked example of docs/disk-format.md.
  ooc::file f = ooc::file::open(sh.store(), "t");
  std::vector<std::byte> element(4);
  CHECK(f.read_at(131684, element) == 4);
  CHECK(std::string(reinterpret_cast<const char*>(element.data()), 4) == data.substr(((17 * 45 + 3) * 33 + 9) * 4, 4));
  sh.refused("import --tile 16x16 t.npy u", "tile");

  sh.ok("import --tile 16x16x8 --max-extents 140x100x80 --sf 4096 t.npy limits");
  f = ooc::file::open(sh.store(), "limits");
  CHECK(f.size() == 2'498'560);
  CHECK(f.read_at(582244, element) == 4);
  CHECK(std::string(reinterpret_cast<const char*>(element.data()), 4) == data.substr(((17 * 45 + 3) * 33 + 9) * 4, 4));
  CHECK(sh.ok("stat limits").find("tiles of 16x16x8, up to 140x100x80") != std::string::npos);
  CHECK(sh.ok("stat limits").find("sparse; its tiles have 600") != std::string::npos);
  CHECK(sh.ok("du --bytes limits").starts_with("614400"));
  sh.ok("cp limits copy");
  for (const char* name : {"limits", "copy"}) {
    sh.ok(std::string("export -f ") + name + " out.npy");
    CHECK(contents(sh.folder / "out.npy") == contents(sh.folder / "t.npy"));
  }
  CHECK(sh.ok("stat --json copy").find("\"max_extents\": [") != std::string::npos);
  sh.ok("cp limits ./plain");
  CHECK(std::filesystem::file_size(sh.folder / "plain") == 2'498'560);
  CHECK(contents(sh.folder / "plain").substr(582244, 4) == data.substr(((17 * 45 + 3) * 33 + 9) * 4, 4));
  sh.refused("truncate -s 8192 limits", "row-major");
  sh.refused("import --tile 16x16x8 --max-extents 140x100 t.npy u", "each dimension");
  sh.refused("import --tile 16x16x8 --max-extents 140x44x80 t.npy u", "below the extent");
  sh.refused("import --max-extents 140x100x80 t.npy u", "each dimension");
  sh.refused("import --tile 16x0x8 t.npy u", "tile");
}

TEST_CASE("names move, folders nest") {
  shell sh;
  write(sh.folder / "a", "12345678");
  sh.ok("mkdir -p x/y/z");
  sh.ok("mkdir -p x/y/z");
  sh.ok("import a x/a --type u1 --shape 8");
  sh.ok("mv x/a x/y/b");
  sh.ok("mv x w");
  CHECK(sh.ok("ls -r") == "w/\nw/y/\nw/y/b\nw/y/z/\n");
  sh.refused("mkdir w", "'w'");
  sh.refused("mkdir q/r", "'q/r'");
  sh.ok("import a q/r/a --type u1 --shape 8");
  CHECK(sh.ok("ls -r q") == "q/r/\nq/r/a\n");
  sh.refused("mv w w/y/q", "itself");
  sh.ok("mv w/y/b w/y/z");
  sh.ok("mv w/y/z/b w/y");
  sh.refused("mv nothing q", "'nothing'");
  sh.refused("import a w/y/b --type u1 --shape 8", "'w/y/b'");
  sh.refused("import a w/y/b/c --type u1 --shape 8", "'w/y/b/c'");
  sh.refused("rm w", "-r");
  sh.refused("rm nothing w/y/b", "nothing");
  sh.refused("rm -r /", "root");
  sh.refused("ls nothing", "nothing");
  sh.refused("stat w/../w", "..");
  sh.refused("export nothing out", "nothing");
  sh.refused("export w out", "folder");
  CHECK_FALSE(fs::exists(sh.folder / "out"));
  sh.refused("export w/y/b a", "--force");
  CHECK(contents(sh.folder / "a") == "12345678");
  sh.refused("export w/y/b no/such/folder", "no/such/folder");
  sh.ok("rm -r w w/y/z w q");
  CHECK(sh.ok("ls").empty());
  CHECK(sh.ok("verify --json").find("\"clean\": true") != std::string::npos);
}

TEST_CASE("attributes are set, shown and removed") {
  shell sh;
  sh.ok("mkdir d");
  sh.ok("attr set d unit kelvin");
  sh.ok("attr set d offset -273.15");
  CHECK(sh.ok("attr get d offset") == "-273.15\n");
  sh.ok("attr rm d offset");
  sh.ok("attr set d 'a b' 'c = d'");
  CHECK(sh.ok("attr get d unit") == "kelvin\n");
  CHECK(sh.ok("attr get d") == "a b=c = d\nunit=kelvin\n");
  CHECK(sh.ok("stat d").find("unit = kelvin") != std::string::npos);
  sh.ok("attr rm d unit");
  sh.refused("attr get d unit", "unit");
  sh.refused("attr rm d unit", "unit");
  sh.refused("attr set d unit", "VALUE");
  sh.refused("attr show d", "show");
}

TEST_CASE("chmod and chown change who may do what, and errors name them") {
  shell sh;
  write(sh.folder / "a", numbered(100));
  sh.ok("mkdir d");
  sh.ok("import a d/a --type u1 --shape 100");
  sh.ok("chmod 640 d/a");
  CHECK(sh.ok("stat d/a").find("-rw-r-----") != std::string::npos);
  sh.ok("chmod -r 0 d");
  CHECK(sh.run("stat --json d").out.find("\"mode\": 0") != std::string::npos);
  sh.ok("chmod 700 d");
  CHECK(sh.ok("stat d/a").find("----------") != std::string::npos);
  sh.ok("chmod -r 755 d");
  CHECK(sh.ok("stat d/a").find("-rwxr-xr-x") != std::string::npos);
  const std::string me = std::to_string(::geteuid()), my_group = std::to_string(::getegid());
  sh.ok("chown " + me + ":" + my_group + " d/a");
  sh.ok("chown :" + my_group + " d/a");
  if (::geteuid() == 0) {
    sh.ok("chown -r 4711 d");
    CHECK(sh.ok("stat d/a").find("owner 4711, group " + my_group) != std::string::npos);
    sh.ok("chown -r 4711:4712 d");
    CHECK(sh.ok("stat d").find("owner 4711, group 4712") != std::string::npos);
  }
  sh.refused("chmod u+q d", "octal");
  sh.refused("chmod 1000 d", "octal");
  sh.refused("chmod 644 nothing", "'nothing'");
  sh.refused("chown no-such-user-here d", "no-such-user-here");
  sh.refused("chown : d", "USER:GROUP");
  sh.refused("chown 5", "PATH");
}

TEST_CASE("standard input and output, FIFOs, and names that a terminal would obey") {
  shell sh;
  const std::string file = npy("f8", {30, 50}, numbered(30 * 50 * 8));
  write(sh.folder / "a.npy", file);
  // Through pipes, which end where the data do.
  sh.ok("import --format npy - a < a.npy");
  CHECK(sh.ok("export --format npy a - | cat") == file);
  sh.ok("export --format raw a - | " OOC_COMMAND " --store " + sh.url() + " import --type f8 --shape 30x50 - b");
  sh.ok("export b b.npy");
  CHECK(contents(sh.folder / "b.npy") == file);
  CHECK_FALSE(fs::exists(sh.folder / "-"));
  sh.refused("import --type f8 --shape 30x51 - c < b.npy", "shape");
  sh.refused("import --type f8 --shape 30x49 - c < b.npy", "more data");
  sh.refused("import --format npy - c < /dev/null", "ended");
  // Of a stream as of a file, --offset says that there may be more.
  write(sh.folder / "raw", "..1234...");
  sh.ok("import -q raw file --type u1 --shape 4 --offset 2");
  sh.ok("import -q - stream --type u1 --shape 4 --offset 2 < raw");
  for (const char* name : {"file", "stream"})
    CHECK(sh.ok("export -q --format raw " + std::string(name) + " -") == "1234");
  sh.refused("import -q - none --type u1 --shape 4 < raw", "more data");
  sh.refused("import -q raw none --type u1 --shape 4", "9 bytes");
  sh.refused("import -q - none --type u1 --shape 8 --offset 2 < raw", "ended");
  // A FIFO is written to, and stays one.
  REQUIRE(::mkfifo((sh.folder / "fifo").c_str(), 0600) == 0);
  sh.run("export -f --format npy a fifo & cat " + (sh.folder / "fifo").string() + " > " +
         (sh.folder / "c.npy").string() + "; wait");
  CHECK(contents(sh.folder / "c.npy") == file);
  CHECK(fs::is_fifo(sh.folder / "fifo"));

  sh.ok("mkdir \"$(printf 'red\\033[31m\\302\\233')\"");
  CHECK(sh.ok("ls").find("red\\x1b[31m\\xc2\\x9b/") != std::string::npos);
  CHECK(sh.run("stat \"$(printf 'no\\033')\"").err.find('\033') == std::string::npos);
}

TEST_CASE("ls takes a URL, help a command, and ~ is no folder") {
  shell sh;
  sh.ok("mkdir d");
  CHECK(sh.run("ls " + sh.url(), "OOC_STORE=").out == "d/\n");
  CHECK(sh.ok("help") == sh.ok("--help"));
  CHECK(sh.ok("help ls") == sh.ok("ls --help"));
  sh.refused("ls local:~/store", "$HOME");
  sh.refused("--store local:/tmp/x,~/store init", "$HOME");
  CHECK_FALSE(fs::exists(sh.folder / "~"));
}

TEST_CASE("a disk that several nodes share counts once") {
  shell sh;
  const auto j = nlohmann::json::parse(sh.ok("df --json"));
  CHECK(j.at("disk_bytes") == j.at("nodes")[0].at("disk_bytes"));
}

namespace {

/// Whether `ooc` keeps signals for later: SIGHUP is the last, and no other program keeps it before.
bool catches_interrupts(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SigCgt:")) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGHUP - 1) & 1) != 0;
  return false;
}

/// Runs `ooc`, with `output` as standard output, and sends it the signal when `begun(its process)`: it ends by that.
template <class Begun>
void interrupt(const shell& sh, std::vector<std::string> words, int signal, const Begun& begun, int output = 1,
               const std::string& says = "no half made file or array stays") {
  words.insert(words.begin(), {OOC_COMMAND, "--store", sh.url()});
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  const std::string err = sh.folder / "stderr";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
    if (fd < 0 || ::dup2(fd, 2) < 0 || ::dup2(output, 1) < 0 || ::chdir(sh.folder.path().c_str()) != 0) ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  CHECK(soon([&] { return begun(pid); }));
  ::kill(pid, signal);
  int status = 0;
  const bool ended = soon([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }, std::chrono::seconds(30));
  if (!ended) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, &status, 0);
  }
  INFO(words[3] << ": " << contents(err));
  CHECK(ended);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == signal);
  CHECK(contents(err).find(says) != std::string::npos);
}

}  // namespace

TEST_CASE("a signal ends import, cp and export, and what was half made goes with it") {
  shell sh;
  {
    std::ofstream(sh.folder / "big") << "x";
    fs::resize_file(sh.folder / "big", std::uint64_t{20} << 30);
  }
  const auto made = [&](pid_t) { return !sh.store().core()->metadata().unfinished().empty(); };
  const auto nothing_left = [&] {
    auto store = sh.store();
    CHECK(store.core()->metadata().unfinished().empty());
    CHECK(store.core()->metadata().dead().empty());
  };
  interrupt(sh, {"import", "-q", "big", "big", "--sparse", "--type", "u1", "--shape", "21474836480"}, SIGINT, made);
  nothing_left();
  ooc::file::create(sh.store(), "sparse", {.size = std::uint64_t{20} << 30, .sparse = true});
  interrupt(sh, {"cp", "-q", "sparse", "other"}, SIGTERM, made);
  nothing_left();
  interrupt(sh, {"export", "-q", "sparse", "out"}, SIGINT, [&](pid_t) {
    for (const auto& e : fs::directory_iterator(sh.folder.path()))
      if (e.path().filename().string().find(".part") != std::string::npos) return true;
    return false;
  });
  for (const auto& e : fs::directory_iterator(sh.folder.path()))
    CHECK(e.path().filename().string().find(".part") == std::string::npos);
  CHECK_FALSE(fs::exists(sh.folder / "out"));

  // Into an array that is there, from a stream that somebody has opened and writes nothing to.
  write(sh.folder / "rows", numbered(8));
  sh.ok("import -q rows there --type u1 --shape 8 --max-extents 100");
  REQUIRE(::mkfifo((sh.folder / "fifo").c_str(), 0600) == 0);
  int fifo = -1;
  const auto opened = [&](pid_t) { return (fifo = ::open((sh.folder / "fifo").c_str(), O_WRONLY | O_NONBLOCK)) >= 0; };
  interrupt(sh, {"import", "-q", "fifo", "there", "--at", "0", "--type", "u1", "--shape", "8"}, SIGINT, opened, 1,
            "elements that had been written by then have their new values");
  ::close(fifo);
  interrupt(sh, {"import", "-q", "fifo", "there", "--append", "--type", "u1", "--shape", "8"}, SIGTERM, opened, 1,
            "rows that were appended have been cut off again");
  ::close(fifo);
  CHECK(sh.ok("export -q --format raw there -") == numbered(8));
}

TEST_CASE("a signal ends who waits for the other end of a FIFO") {
  shell sh;
  ooc::file::create(sh.store(), "sparse", {.size = 10'000'000, .sparse = true});
  const std::string fifo = sh.folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  interrupt(sh, {"cp", "-q", "./fifo", "in"}, SIGINT, catches_interrupts);
  interrupt(sh, {"cp", "-q", "sparse", "./fifo"}, SIGTERM, catches_interrupts);
  interrupt(sh, {"export", "-q", "--format", "raw", "-f", "sparse", "fifo"}, SIGINT, catches_interrupts);
  CHECK(sh.ok("ls") == "sparse\n");

  // A reader that reads nothing: the pipe is full.
  const auto full = [](int reader) {
    int bytes = 0;
    return ::ioctl(reader, FIONREAD, &bytes) == 0 && bytes == ::fcntl(reader, F_GETPIPE_SZ);
  };
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  interrupt(sh, {"cp", "-q", "sparse", "./fifo"}, SIGINT, [&](pid_t) { return full(reader); });
  ::close(reader);
  int pipe[2];
  REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
  interrupt(
      sh, {"cat", "sparse"}, SIGTERM, [&](pid_t) { return full(pipe[0]); }, pipe[1]);
  CHECK((::fcntl(pipe[1], F_GETFL) & O_NONBLOCK) == 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("bad command lines are one line and status 1") {
  shell sh;
  sh.refused("", "no command");
  sh.refused("fly", "fly");
  sh.refused("--fly ls", "--fly");
  sh.refused("ls --fly", "fly");
  sh.refused("ls a b", "'a'");
  sh.refused("info a b", "option");
  sh.refused("stat", "PATH");
  sh.refused("ls", "no store", "OOC_STORE=");
  sh.refused("ls --store local:/nowhere/at/all", "/nowhere/at/all");
  sh.refused("ls --store ooc://127.0.0.1:1/?deadline=1s", "start the server");
  sh.refused("ls --store ooc://127.0.0.1:1/?patience=1s", "?deadline=10s");
  sh.refused("ls --store ooc://127.0.0.1:1/?deadline=1y", "'1y'");
  sh.refused("--store local:relative/missing ls", "relative/missing");
  sh.refused("export x y --buffer 1Q", "1Q");
  sh.refused("import nothing x --type u1 --shape 1", "nothing");
  sh.refused("import . x --type u1 --shape 1", "directory");
  CHECK_FALSE(fs::exists(sh.folder / "relative"));
}

TEST_CASE("info names the nodes", "[local]") {
  shell sh;
  CHECK(sh.ok("info").find((sh.folder / "n1").string()) != std::string::npos);
  CHECK(sh.ok("info --json").find("\"uuid\"") != std::string::npos);
  CHECK(sh.ok("info").find("arrays are mapped here by ") != std::string::npos);
  CHECK(sh.ok("--store " + sh.url() + " info").find("files  0") != std::string::npos);
}

TEST_CASE("info of a store whose files are removed meanwhile counts the others") {
  shell sh;
  constexpr int files = 1000;
  auto store = sh.store();
  for (int i = 0; i < files; ++i) ooc::file::create(store, "f" + std::to_string(i), {.size = 10, .sparse = true});
  auto removal = std::async(std::launch::async, [&] {
    for (int i = files; i-- > 0;) store.remove("f" + std::to_string(i));  // the last that it looks at come first
  });
  do {
    const outcome o = sh.run("info");
    INFO(o.err);
    REQUIRE(o.status == 0);
  } while (removal.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
  removal.get();
  CHECK(sh.ok("info").find("files  0, ") != std::string::npos);
}

TEST_CASE("verify finds damage, missing shares and orphans", "[local]") {
  shell sh;
  write(sh.folder / "a", numbered(1'000'000));
  sh.ok("import a a --type u1 --shape 1000000");
  CHECK(sh.run("verify").status == 0);

  // Every file outside the entry's own database that is large enough holds data: damage one.
  fs::path victim;
  for (const auto& e : fs::recursive_directory_iterator(sh.folder / "n1"))
    if (e.is_regular_file() && e.path().extension() == ".data") victim = e.path();
  REQUIRE_FALSE(victim.empty());
  {
    std::fstream f(victim, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(10000);
    f.put(static_cast<char>(~numbered(1'000'000)[0]));
    f.seekp(10001);
    f.put('?');
  }
  outcome o = sh.run("verify");
  INFO(o.out << o.err);
  CHECK(o.status == 2);
  CHECK(o.out.find("1 corrupt") != std::string::npos);
  const std::string json = sh.run("verify --json").out;
  INFO(json);
  for (const char* part :
       {"\"clean\": false", "\"corrupt\": 1", "\"lost\": 0", "\"torn\": 0", "\"file\": \"a\"", "\"node\": 1"})
    CHECK(json.find(part) != std::string::npos);
  CHECK(json.find((sh.folder / "n1").string()) != std::string::npos);
  CHECK(sh.run("verify a").status == 2);
  sh.refused("export a out", "'a'");
  CHECK_FALSE(fs::exists(sh.folder / "out"));
  for (const auto& e : fs::directory_iterator(sh.folder.path()))
    CHECK(e.path().filename().string().find(".part") == std::string::npos);

  // A share without an entry.
  sh.ok("rm a");
  CHECK(sh.run("verify").status == 0);
  {
    auto store = sh.store();
    ooc::storage::file_shape shape;
    shape.id = 4711;
    shape.striping = {0, 2, 4096};
    shape.size = 10000;
    shape.name = "orphan";
    ooc::storage::striped_file f(std::make_shared<const ooc::storage::file_shape>(shape), store.core()->nodes());
    ooc::throw_if(f.create_objects());
  }
  o = sh.run("verify");
  CHECK(o.status == 2);
  CHECK(o.out.find("4711") != std::string::npos);
  CHECK(sh.run("verify --remove-orphans").status == 2);
  CHECK(sh.run("verify").status == 0);
}

TEST_CASE("a store whose metadata come from an older copy takes new files once the orphans are removed", "[local]") {
  shell sh;
  write(sh.folder / "f", numbered(100'000));
  sh.ok("cp ./f one");
  const fs::path folder =
      fs::path(sh.url().substr(sh.url().find(':') + 1, sh.url().find(',') - sh.url().find(':') - 1));
  const auto metadata = [&](const fs::path& from, const fs::path& to) {
    for (const auto& e : fs::directory_iterator(from))
      if (e.path().filename().string().starts_with("metadata."))
        fs::copy_file(e.path(), to / e.path().filename(), fs::copy_options::overwrite_existing);
  };
  fs::create_directory(sh.folder / "copy");
  metadata(folder, sh.folder / "copy");
  sh.ok("cp ./f two");
  sh.ok("cp ./f three");
  metadata(sh.folder / "copy", folder);
  CHECK(sh.run("verify --remove-orphans").status == 2);
  CHECK(sh.run("verify").status == 0);
  sh.ok("cp ./f four");
  CHECK(sh.ok("cat four") == numbered(100'000));
  CHECK(sh.run("verify").status == 0);
}

TEST_CASE("an import that is killed leaves nothing once the store is opened again", "[local]") {
  shell sh;
  write(sh.folder / "a", numbered(1000));
  {
    // The largest sparse file there is to read: killed long before its end.
    std::ofstream(sh.folder / "big") << "x";
    fs::resize_file(sh.folder / "big", std::uint64_t{20} << 30);
  }
  const outcome o = sh.run("import big big --sparse --type u1 --shape 21474836480", "timeout -s KILL 1");
  CHECK(o.status != 0);
  CHECK(sh.ok("ls").empty());
  CHECK(sh.ok("verify --json").find("\"files\": 0") != std::string::npos);
  CHECK(sh.run("verify").status == 0);
  sh.ok("import a big --type u1 --shape 1000");
}
