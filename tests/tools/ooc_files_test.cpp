// ooc cp, mv, rm, cat, du, truncate and ls as hands expect them: several sources, plain files,
// wildcards, URLs.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <string>

#include "oocarray/ooc_array.hpp"
#include "support/shell.hpp"
#include "support/small_space.hpp"

using namespace ooc::testing;
using namespace ooc::literals;

namespace {

void import_bytes(shell& sh, const std::string& path, const std::string& data) {
  write(sh.folder / "import", data);
  sh.ok("import import " + path + " --type u1 --shape " + std::to_string(data.size()));
}

}  // namespace

TEST_CASE("several sources go into a folder, and only into one") {
  shell sh;
  sh.ok("mkdir d e");
  for (const char* n : {"a", "b", "c"}) import_bytes(sh, n, n);
  sh.ok("cp a b d");
  CHECK(sh.ok("ls d") == "d/a\nd/b\n");
  sh.ok("mv a b c e/");
  CHECK(sh.ok("ls -r") == "d/\nd/a\nd/b\ne/\ne/a\ne/b\ne/c\n");
  sh.refused("cp e/a e/b e/c", "'e/c'");
  sh.refused("mv e/a e/b new", "'new'");
  sh.ok("mkdir g");
  sh.refused("cp d/a e/a g", "both become 'g/a'");
  sh.refused("cp -r d d", "itself");
  sh.refused("cp d/a d/a", "the same");
  sh.refused("mv d/a d", "the same");
  sh.refused("cp d/a", "DESTINATION");
  sh.refused("cp d e/new", "-r");
}

TEST_CASE("copies within the store keep shape, type, tiles, fill, attributes and mode") {
  shell sh;
  const std::string data = numbered(70 * 50 * 4);
  write(sh.folder / "t", data);
  sh.ok("import --type f4 --shape 70x50 --tile 16x16 t a");
  sh.ok("attr set a unit kelvin");
  sh.ok("chmod 640 a");
  sh.ok("mkdir d");
  sh.ok("attr set d note deep");
  sh.ok("cp a d");
  sh.ok("cp -r d f");
  CHECK(sh.ok("attr get f note") == "deep\n");
  sh.ok("mv f/a b");
  const auto was = nlohmann::json::parse(sh.ok("stat --json a"));
  auto is = nlohmann::json::parse(sh.ok("stat --json b"));
  for (const char* same : {"extents", "element_type", "tile", "attributes", "mode", "size"})
    CHECK(was.at(same) == is.at(same));
  CHECK(sh.ok("export b -") == data);
}

TEST_CASE("cp and mv replace what is there, -n does not", "[served]") {
  shell sh;
  import_bytes(sh, "a", "12345678");
  import_bytes(sh, "b", "abcd");
  sh.ok("cp -n a b");
  CHECK(sh.ok("cat b") == "abcd");
  sh.ok("cp a b");
  CHECK(sh.ok("cat b") == "12345678");
  import_bytes(sh, "c", "wxyz");
  sh.ok("mv -n c a");
  CHECK(sh.ok("cat a") == "12345678");
  CHECK(sh.ok("ls") == "a\nb\nc\n");
  sh.ok("mv -f c a");
  CHECK(sh.ok("cat a") == "wxyz");
  CHECK(sh.ok("ls") == "a\nb\n");
  sh.ok("mkdir -p d/a e/d");
  sh.refused("mv a d", "'d/a'");
  sh.refused("cp a d", "'d/a'");
  sh.ok("mv d e");  // e/d is an empty folder
  CHECK(sh.ok("ls -r e") == "e/d/\ne/d/a/\n");
  sh.ok("mkdir d");
  sh.refused("mv d e", "something in it");
  CHECK(nlohmann::json::parse(sh.ok("verify -q --json")).at("clean") == true);  // nothing of the replaced is left
}

TEST_CASE("plain files go into the store and come out, with holes and modes") {
  shell sh;
  const std::string data = numbered(300'001);
  write(sh.folder / "plain", data);
  fs::create_directories(sh.folder / "tree" / "below" / "empty");
  write(sh.folder / "tree" / "x", "x");
  write(sh.folder / "tree" / "below" / "y", "");
  fs::permissions(sh.folder / "tree" / "x", fs::perms(0600));
  fs::create_symlink("x", sh.folder / "tree" / "link");
  sh.ok("cp ./plain p");
  CHECK(sh.ok("cat p") == data);
  sh.ok("cp file:" + (sh.folder / "plain").string() + " q");
  sh.ok("cp p ./out");
  CHECK(contents(sh.folder / "out") == data);
  sh.ok("cp -r ./tree t");
  CHECK(sh.ok("ls -r t") == "t/below/\nt/below/empty/\nt/below/y\nt/link\nt/x\n");
  CHECK(sh.ok("ls -l t").find("-rw-------") != std::string::npos);
  sh.ok("cp -r t ./back");
  CHECK(contents(sh.folder / "back" / "x") == "x");
  CHECK(fs::read_symlink(sh.folder / "back" / "link") == "x");
  CHECK(fs::is_directory(sh.folder / "back" / "below" / "empty"));
  CHECK((fs::status(sh.folder / "back" / "x").permissions() & fs::perms(0777)) == fs::perms(0600));
  sh.ok("mkdir d");
  sh.ok("cp ./plain ./tree/x d");
  CHECK(sh.ok("ls d") == "d/plain\nd/x\n");
  sh.ok("mv d/plain d/x ./tree");
  CHECK(contents(sh.folder / "tree" / "plain") == data);
  CHECK(sh.ok("ls d").empty());
  sh.ok("mv ./out moved");
  CHECK_FALSE(fs::exists(sh.folder / "out"));
  CHECK(sh.ok("cat moved") == data);

  write(sh.folder / "holes", "x");
  fs::resize_file(sh.folder / "holes", 64_MiB);
  sh.ok("cp ./holes s");
  CHECK(nlohmann::json::parse(sh.ok("stat --json s")).at("sparse") == true);
  sh.ok("cp s ./holes2");
  CHECK(contents(sh.folder / "holes2") == contents(sh.folder / "holes"));
  struct ::stat st {};
  REQUIRE(::stat((sh.folder / "holes2").c_str(), &st) == 0);
  CHECK(st.st_blocks * 512 < 1'000'000);

  sh.refused("cp ./plain ./other", "both plain files");
  sh.refused("cp ./nothing x", "'./nothing'");
  sh.refused("cp p ./no/such/folder", "no/such/folder");
  sh.refused("cp ./tree new", "-r");
  sh.refused("cp p ./tree/below/empty/../../x/y", "x/y");
  for (const auto& e : fs::recursive_directory_iterator(sh.folder.path()))
    CHECK(e.path().filename().string().find(".part-") == std::string::npos);
}

TEST_CASE("a plain file takes the place of no link, socket or folder") {
  shell sh;
  import_bytes(sh, "a", "12345678");
  write(sh.folder / "real", "old");
  fs::create_symlink("real", sh.folder / "link");
  sh.ok("cp a ./link");
  CHECK(fs::read_symlink(sh.folder / "link") == "real");
  CHECK(contents(sh.folder / "real") == "12345678");
  sh.refused("export --format raw a link", "--force");
  sh.ok("export -f --format raw a link");
  CHECK(fs::is_symlink(sh.folder / "link"));
  fs::create_symlink("far/away", sh.folder / "dangling");
  sh.refused("cp a ./dangling", "'./dangling' is a symbolic link to 'far/away', which is not there");
  CHECK(fs::is_symlink(sh.folder / "dangling"));
  REQUIRE(::mknod((sh.folder / "socket").c_str(), S_IFSOCK | 0600, 0) == 0);
  sh.refused("cp a ./socket", "'./socket' is a socket or a device");
  CHECK(fs::is_socket(sh.folder / "socket"));
}

TEST_CASE("what killed exports have left under the same process id is not in the way") {
  shell sh;
  import_bytes(sh, "a", "12345678");
  const outcome o =
      run_command("cd " + sh.folder.path().string() + " && OOC_STORE=" + sh.url() +
                      " sh -c 'touch out.part-$$ out.part-$$-1; exec " OOC_COMMAND " export --format raw a out'",
                  (sh.folder / "output").string());
  INFO(o.err);
  CHECK(o.status == 0);
  CHECK(contents(sh.folder / "out") == "12345678");
}

TEST_CASE("names of 255 bytes are taken in the store and outside") {
  shell sh;
  const std::string name(255, 'n');
  write(sh.folder / name, "12345678");
  sh.ok("cp ./" + name + " " + name);
  fs::remove(sh.folder / name);
  sh.ok("cp " + name + " ./" + name);
  CHECK(contents(sh.folder / name) == "12345678");
  sh.ok("export -f --format raw " + name + " " + name);
}

TEST_CASE("a file of a store that is called - is no stream, and a link is none either") {
  shell sh;
  const std::string minus = sh.url() + "/-";
  write(sh.folder / "a", "first");
  write(sh.folder / "b", "second");
  sh.ok("cp ./a " + minus);
  sh.ok("cp -n ./b " + minus);
  CHECK(sh.ok("cat " + minus) == "first");
  sh.ok("mv " + minus + " " + sh.url() + "/c");
  CHECK(sh.ok("ls") == "c\n");
  fs::create_directory(sh.folder / "tree");
  fs::create_symlink("x", sh.folder / "tree" / "link");
  sh.ok("cp -r ./tree t");
  write(sh.folder / "-", "mine");
  sh.refused("cp t/link -", "symbolic link");
  CHECK(contents(sh.folder / "-") == "mine");
}

TEST_CASE("mv removes what it has copied, and nothing that has come into a folder since then") {
  shell sh;
  fs::create_directory(sh.folder / "tree");
  write(sh.folder / "tree" / "x", "x");
  sh.ok("mkdir d");
  REQUIRE(::mkfifo((sh.folder / "fifo").c_str(), 0600) == 0);
  std::future<outcome> moving = std::async(std::launch::async, [&] { return sh.run("mv -q ./fifo ./tree d"); });
  std::ofstream stream(sh.folder / "fifo");  // waits until mv reads, which has looked at all before
  write(sh.folder / "tree" / "late", "late");
  stream << "first";
  stream.close();
  const outcome o = moving.get();
  CHECK(o.status == 1);
  CHECK(o.err.find("tree' cannot be removed: Directory not empty") != std::string::npos);
  CHECK_FALSE(fs::exists(sh.folder / "tree" / "x"));
  CHECK(sh.ok("cat d/fifo d/tree/x") == "firstx");
  CHECK(contents(sh.folder / "tree" / "late") == "late");
}

TEST_CASE("cp names a FIFO in a folder, which it does not copy, and copies the rest") {
  shell sh;
  fs::create_directory(sh.folder / "tree");
  write(sh.folder / "tree" / "x", "x");
  REQUIRE(::mkfifo((sh.folder / "tree" / "fifo").c_str(), 0600) == 0);
  const outcome o = sh.run("cp -r -q ./tree d");
  CHECK(o.status == 1);
  CHECK(o.err.find("tree/fifo' is a FIFO") != std::string::npos);
  CHECK(sh.ok("ls -r") == "d/\nd/x\n");
}

TEST_CASE("mv takes no link to a folder for the folder") {
  shell sh;
  fs::create_directory(sh.folder / "tree");
  write(sh.folder / "tree" / "x", "x");
  fs::create_directory_symlink("tree", sh.folder / "link");
  sh.refused("mv ./link d", "'./link' is a symbolic link to a folder");
  sh.refused("mv ./link/ d", "symbolic link");
  CHECK(contents(sh.folder / "tree" / "x") == "x");
}

TEST_CASE("a URL names a store and a path in it, and the rest is plain files", "[served]") {
  shell sh;
  const std::string there = sh.url() + (sh.url().ends_with("/") ? "" : "/");
  import_bytes(sh, "a", "12345678");
  sh.ok("mkdir d");
  CHECK(sh.run("ls " + there + "d", "OOC_STORE=").status == 0);
  CHECK(sh.run("cat " + there + "a", "OOC_STORE=").out == "12345678");
  CHECK(sh.run("cp " + there + "a b", "OOC_STORE=").status == 0);
  CHECK(contents(sh.folder / "b") == "12345678");
  CHECK(sh.run("cp b " + there + "d", "OOC_STORE=").status == 0);
  CHECK(sh.run("mv " + there + "d/b " + there + "c", "OOC_STORE=").status == 0);
  CHECK(sh.run("export " + there + "c e.npy --format npy", "OOC_STORE=").status == 0);
  CHECK(sh.run("import e.npy " + there + "d/e", "OOC_STORE=").status == 0);
  CHECK(sh.run("stat " + there + "d/e", "OOC_STORE=").out.find("u1 8") != std::string::npos);
  CHECK(sh.run("ls -r '" + there + "[a-c]'", "OOC_STORE=").out == "a\nc\n");
  CHECK(sh.run("rm " + there + "c", "OOC_STORE=").status == 0);
  CHECK(sh.ok("ls -r") == "a\nd/\nd/e\n");
}

TEST_CASE("wildcards match names in the store") {
  shell sh;
  sh.ok("mkdir -p runs/1 runs/2");
  for (const char* n : {"runs/1/a.dat", "runs/2/a.dat", "runs/2/b.dat", "runs/2/.hidden.dat", "runs/2/x*"})
    import_bytes(sh, "'" + std::string(n) + "'", n);
  CHECK(sh.ok("ls 'runs/*/a.dat'") == "runs/1/a.dat\nruns/2/a.dat\n");
  CHECK(sh.ok("ls 'runs/2/?.dat'") == "runs/2/a.dat\nruns/2/b.dat\n");
  CHECK(sh.ok("ls 'runs/2/[!a].dat'") == "runs/2/b.dat\n");
  CHECK(sh.ok("ls -d 'runs/*'") == "runs/1/\nruns/2/\n");
  CHECK(sh.ok("cat 'runs/*/a.dat'") == "runs/1/a.datruns/2/a.dat");
  sh.refused("ls '*.npy'", "'*.npy' matches nothing");
  sh.refused("rm 'runs/3/*'", "matches nothing");
  sh.ok("mkdir d");
  sh.ok("cp 'runs/2/*.dat' d");
  CHECK(sh.ok("ls d") == "d/a.dat\nd/b.dat\n");
  sh.ok("rm 'runs/2/x*'");  // the one with exactly this name
  sh.ok("rm 'd/*.dat'");
  CHECK(sh.ok("ls -r d").empty());
  sh.ok("chmod 600 'runs/2/*.dat'");
  CHECK(sh.ok("stat runs/2/b.dat").find("-rw-------") != std::string::npos);
}

TEST_CASE("cp reads standard input and writes standard output", "[served]") {
  shell sh;
  const std::string data = numbered(5'000'003);
  write(sh.folder / "f", data);
  sh.ok("cp -q - p < f");
  CHECK(sh.ok("cat p") == data);
  CHECK(sh.ok("cp -q p -") == data);
  CHECK(sh.ok("cp -q p - | " OOC_COMMAND " --store " + sh.url() + " cp -q --buffer 4096 - q").empty());
  CHECK(sh.ok("cat p q") == data + data);
  sh.ok("cp - nothing < /dev/null");
  CHECK(sh.ok("cat nothing").empty());
  sh.ok("mkdir d");
  sh.refused("cp - d < f", "'d'");
  sh.refused("cp - no/such < f", "no/such");
  sh.refused("mv - x < f", "ooc cp");
  sh.refused("cat d", "'d'");
  CHECK(nlohmann::json::parse(sh.ok("verify -q --json")).at("clean") == true);
}

TEST_CASE("cp of a stream takes no more space than there is") {
  temporary_folder folder;
  fs::create_directory(folder / "small");
  const std::string data = numbered(1'500'000);
  write(folder / "data", data);
  CHECK(in_small_space(folder / "small", [&](bool) {
          const auto ooc = [&](const std::string& arguments) {
            return run_command(OOC_COMMAND " --store local:" + (folder / "small/store").string() + " " + arguments,
                               (folder / "output").string());
          };
          EXPECT(ooc("init").status == 0);
          EXPECT(ooc("cp -q --buffer 100000 - p < " + (folder / "data").string()).err == "");
          EXPECT(ooc("cat p").out == data);
          return 0;
        }) == 0);
}

TEST_CASE("a file of /proc, which says that it has no bytes, is copied with all that it has") {
  shell sh;
  sh.ok("cp file:/proc/version p");
  CHECK(sh.ok("cat p") == contents("/proc/version"));
  write(sh.folder / "empty", "");
  fs::permissions(sh.folder / "empty", fs::perms(0440));
  sh.ok("cp ./empty e");
  CHECK(sh.ok("ls -l e").find("-r--r-----") != std::string::npos);
  CHECK(sh.ok("du -b e") == "0           e\n");
}

TEST_CASE("du adds up what is in folders") {
  shell sh;
  sh.ok("mkdir -p x/y");
  import_bytes(sh, "x/a", numbered(3000));
  import_bytes(sh, "x/y/b", numbered(500));
  CHECK(sh.ok("du -b") == "500         x/y/\n3500        x/\n3500        /\n");
  CHECK(sh.ok("du -b -s x x/a") == "3500        x/\n3000        x/a\n");
  CHECK(sh.ok("du x/a").find("2.9 KiB") != std::string::npos);
  CHECK(sh.ok("du -h x/a") == sh.ok("du x/a"));
  CHECK(sh.ok("du -sh x") == sh.ok("du -s x"));
  CHECK(sh.ok("ls -R x") == sh.ok("ls -r x"));
  sh.ok("cp -R x z");
  CHECK(sh.ok("ls -R z") == "z/a\nz/y/\nz/y/b\n");
  sh.ok("rm -R z");
  const auto j = nlohmann::json::parse(sh.ok("du --json -s x"));
  CHECK(j[0].at("bytes") == 3500);
  CHECK(j[0].at("files") == 2);
  sh.refused("du nothing", "'nothing'");
}

TEST_CASE("truncate cuts and extends files, and arrays by whole rows") {
  shell sh;
  sh.ok("truncate -s 1000 p");
  CHECK(sh.ok("cat p") == std::string(1000, '\0'));
  sh.ok("cp - p < " OOC_COMMAND);
  sh.ok("truncate -s 8 p");
  CHECK(sh.ok("cat p") == contents(OOC_COMMAND).substr(0, 8));
  sh.ok("truncate -s +4 p");
  CHECK(sh.ok("cat p") == contents(OOC_COMMAND).substr(0, 8) + std::string(4, '\0'));
  sh.ok("truncate -s -10 p");
  CHECK(sh.ok("du -b p") == "2           p\n");
  sh.ok("truncate -c -s 5 nothing");
  CHECK(sh.ok("ls") == "p\n");
  const std::string data = numbered(20 * 10 * 4);
  write(sh.folder / "a", data);
  sh.ok("import --type f4 --shape 20x10 a a");
  sh.ok("truncate -s 200 a");
  CHECK(sh.ok("stat a").find("f4 5x10") != std::string::npos);
  CHECK(sh.ok("export a -") == data.substr(0, 200));
  sh.ok("truncate -s +40 a");
  CHECK(sh.ok("stat a").find("f4 6x10") != std::string::npos);
  CHECK(sh.ok("export a -") == data.substr(0, 200) + std::string(40, '\0'));
  sh.refused("truncate -s 201 a", "multiple of 40");
  sh.ok("truncate -s 0 a");
  CHECK(sh.ok("stat a").find("f4 0x10") != std::string::npos);
  sh.ok("truncate -s 80 a");
  CHECK(sh.ok("export a -") == std::string(80, '\0'));
  sh.ok("import --type f4 --shape 20x10 --tile 4x4 a t");
  sh.refused("truncate -s 40 t", "row-major");
  sh.refused("truncate p", "--size");
  sh.refused("truncate -s much p", "much");
  sh.refused("truncate -s 1 no/such", "no/such");
}

TEST_CASE("sizes are taken to the byte, up to 2^63 - 1, and fractions of units are whole bytes") {
  shell sh;
  write(sh.folder / "a", numbered(21));
  // Whether so many bytes are whole rows is looked at before whether a disk has them.
  const auto fits = [&](const std::string& rows, const std::string& size) {
    sh.ok("import -q -f --type u1 --shape " + rows + " a a");
    return sh.run("truncate -s " + size + " a").err.find("must keep whole rows") == std::string::npos;
  };
  CHECK(fits("7x3", "9007199254740993"));  // 2^53 + 1
  CHECK_FALSE(fits("7x3", "9007199254740992"));
  CHECK(fits("3x7", "9223372036854775807"));
  CHECK_FALSE(fits("3x7", "9223372036854775806"));
  sh.refused("truncate -s 9223372036854775808 a", "'9223372036854775808' is not a size up to 2^63 - 1");
  sh.refused("truncate -s 8388608T a", "'8388608T' is not a size");
  sh.refused("truncate -s 0.3K a", "'0.3K' is not a size");
  sh.ok("truncate -s 1.5K b");
  CHECK(sh.ok("du -b b") == "1536        b\n");
  sh.ok("truncate -s 1e3 b");
  CHECK(sh.ok("du -b b") == "1000        b\n");
}

TEST_CASE("what a writer has open is neither removed, replaced nor cut, and the message says who", "[served]") {
  shell sh;
  import_bytes(sh, "other", "12345678");
  sh.ok("mkdir d");
  write(sh.folder / "f", "12345678");
  {
    auto store = sh.store();
    ooc::runtime rt{{.memory = 8_MiB}};
    ooc::ooc_array<double, 1> a{rt, store, "d/a", ooc::create, {1000}};
    sh.refused("rm d/a", "'d/a' is open for writing");
    sh.refused("rm -r d", "close it there");
    sh.refused("rm -r other d", "'d/a'");
    sh.refused("cp other d/a", "cannot be replaced");
    sh.refused("cp ./f d/a", "cannot be replaced");
    sh.refused("mv other d/a", "cannot be replaced");
    sh.refused("mv d ./away", "cannot be moved");
    sh.refused("truncate -s 80 d/a", "cut");
    sh.ok("mv d/a d/b");  // a new name does no harm
    sh.ok("mv d/b d/a");
  }
  CHECK_FALSE(fs::exists(sh.folder / "away"));
  sh.ok("cp other d/a");
  CHECK(sh.ok("cat d/a") == "12345678");
  sh.ok("rm -r d");
}
