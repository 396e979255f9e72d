// Local stores on network file systems, which a preloaded statfs() plays here.
#include <catch2/catch.hpp>
#include <string>

#include "support/shell.hpp"

using namespace ooc::testing;

namespace {

/// A shell in which what lies in `network` is on the file system of this type.
struct network_shell : shell {
  explicit network_shell(const char* type)
      : environment("LD_PRELOAD=" OTHER_FILE_SYSTEM " OOC_TEST_FILE_SYSTEM=" + std::string(type)) {
    fs::create_directory(folder / "network");
  }
  outcome there(const std::string& arguments) { return run(arguments, environment); }

  const std::string environment;
};

}  // namespace

TEST_CASE("a local store on a network file system is refused before anything is written", "[local]") {
  struct known {
    const char *type, *name;
  };
  const auto [type, name] =
      GENERATE(known{"0x6969", "NFS"}, known{"0x0bd00bd0", "Lustre"}, known{"0x47504653", "GPFS"});
  network_shell sh(type);
  for (const char* url : {"local:network/s", "local:here,network/s"}) {
    const outcome o = sh.there("init --store " + std::string(url));
    CHECK(o.status == 1);
    CHECK(o.err.find("network/s' is on a network file system (" + std::string(name) + ")") != std::string::npos);
    CHECK(o.err.find("`ooc up`") != std::string::npos);
    CHECK(o.err.find("?hosts=one'") != std::string::npos);
  }
  CHECK(fs::is_empty(sh.folder / "network"));
  CHECK_FALSE(fs::exists(sh.folder / "here"));
}

TEST_CASE("a store that only one host uses may be on a network file system, where its URL says so", "[local]") {
  network_shell sh("0x6969");
  const std::string url = "--store 'local:network/s?hosts=one' ";
  CHECK(sh.there("init " + url).status == 0);
  CHECK(sh.there("mkdir " + url + "d").status == 0);
  CHECK(sh.there("ls " + url).out == "d/\n");
  CHECK(sh.there("ls 'local:network/s/d?hosts=one'").status == 0);
  CHECK(sh.there("ls --store local:network/s").status == 1);
  CHECK(sh.there("ls").status == 0);  // the local one
}
