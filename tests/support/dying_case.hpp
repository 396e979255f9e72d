// A hidden case of the same program, run in a process of its own, in which it kills itself.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace ooc::testing {

/// The URL of the local store that run_dying_case() has told this process of.
inline std::string url_of_dying_case() {
  const char* const folder = std::getenv("OOC_TEST_FOLDER");
  REQUIRE(folder != nullptr);
  return "local:" + std::string(folder);
}

/// Runs the case with this tag, with a store in `folder`, and returns the status of waitpid().  `part` is in its
/// environment as OOC_TEST_PART.
inline int run_case(const char* tag, const std::filesystem::path& folder, const char* part = "") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("OOC_TEST_FOLDER", folder.c_str(), 1);
    ::setenv("OOC_TEST_PART", part, 1);
    ::execl("/proc/self/exe", ::program_invocation_short_name, tag, nullptr);
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

/// The same until it has killed itself (SIGKILL).
inline void run_dying_case(const char* tag, const std::filesystem::path& folder, const char* part = "") {
  const int status = run_case(tag, folder, part);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
}

}  // namespace ooc::testing
