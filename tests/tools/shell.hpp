// A shell with a store in which tests call `ooc` as a user does.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "oocarray/store.hpp"
#include "storage/temporary_folder.hpp"

namespace ooc::testing {

namespace fs = std::filesystem;

struct outcome {
  int status = -1;
  std::string out, err;
};

inline std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A store and a folder to call `ooc` in.
struct shell {
  shell() { REQUIRE(run("init").status == 0); }

  std::string url() const {
    return "local:" + (folder / "n0").string() + "," + (folder / "n1").string();
  }

  outcome run(const std::string& arguments, const std::string& environment = "") {
    const std::string out = folder / "stdout", err = folder / "stderr";
    const std::string line = "cd " + folder.path().string() + " && env OOC_STORE=" + url() + " " +
                             environment + " " OOC_COMMAND " " + arguments + " > " + out + " 2> " +
                             err;
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  std::string ok(const std::string& arguments) {
    const outcome o = run(arguments);
    INFO("ooc " << arguments << ": " << o.err);
    CHECK(o.status == 0);
    CHECK(o.err.empty());
    return o.out;
  }

  /// Fails with status 1 and one line that names `named`; the store lists as before.
  void refused(const std::string& arguments, const std::string& named,
               const std::string& environment = "") {
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
};

inline std::string numbered(std::size_t n) {
  std::string s(n, '\0');
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(i * 2654435761u >> 13);
  return s;
}

}  // namespace ooc::testing
