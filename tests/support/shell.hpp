// A shell with a store in which tests call `ooc` as a user does.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "oocarray/store.hpp"
#include "support/run_command.hpp"
#include "support/servers.hpp"
#include "support/temporary_folder.hpp"

namespace ooc::testing {

/// A store and a folder to call `ooc` in.  The store is embedded, with two nodes, or, where the
/// environment variable OOC_TEST_SERVERS says so, served by as many I/O servers.
struct shell {
  shell() {
    if (const char* n = std::getenv("OOC_TEST_SERVERS"))
      servers_ = std::make_unique<servers>(folder / "servers", std::stoul(n));
    else
      REQUIRE(run("init").status == 0);
  }

  std::string url() const {
    if (servers_) return servers_->url();
    return "local:" + (folder / "n0").string() + "," + (folder / "n1").string();
  }

  outcome run(const std::string& arguments, const std::string& environment = "") {
    return run_command("cd " + folder.path().string() + " && env OOC_STORE=" + url() + " " + environment +
                           " " OOC_COMMAND " " + arguments,
                       (folder / "output").string());
  }

  std::string ok(const std::string& arguments) {
    const outcome o = run(arguments);
    INFO("ooc " << arguments << ": " << o.err);
    CHECK(o.status == 0);
    CHECK(o.err.find("ooc: ") == std::string::npos);  // where the disk is slow, progress is there
    return o.out;
  }

  /// Fails with status 1 and one line that names `named`; the store lists as before.
  void refused(const std::string& arguments, const std::string& named, const std::string& environment = "") {
    const std::string before = run("ls -r --json").out;
    const outcome o = run(arguments, environment);
    INFO("ooc " << arguments << ": " << o.err);
    CHECK(o.status == 1);
    CHECK(o.out.empty());
    CHECK(o.err.starts_with("ooc: "));
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK(o.err.find(named) != std::string::npos);
    CHECK(run("ls -r --json").out == before);
  }

  ooc::store store() const { return ooc::store::open(url(), {.create = false}); }

  temporary_folder folder;

 private:
  std::unique_ptr<servers> servers_;
};

inline std::string numbered(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 2654435761u >> 13);
  return s;
}

}  // namespace ooc::testing
