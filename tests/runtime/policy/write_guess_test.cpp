#include "runtime/policy/write_guess.hpp"

#include <catch2/catch.hpp>

using ooc::detail::write_guess;

namespace {

/// Of so many grains that are read, those that come in writable, where every `written`-th is written next.
int writable_of(write_guess& g, int grains, int written) {
  int writable = 0;
  for (int i = 0; i < grains; ++i) {
    const bool comes_writable = g.comes_in();
    writable += comes_writable;
    if (!comes_writable && written != 0 && i % written == 0) g.written();
  }
  return writable;
}

}  // namespace

TEST_CASE("grains come in writable where those that were read have been written") {
  write_guess g;
  writable_of(g, 200, 1);
  CHECK(writable_of(g, 800, 1) == 700);  // but for one in 8
}

TEST_CASE("grains come in protected where they are read only, or half of them") {
  write_guess g;
  CHECK(writable_of(g, 10'000, 0) == 0);
  CHECK(writable_of(g, 10'000, 2) == 0);
}

TEST_CASE("what is no longer written comes in protected again") {
  write_guess g;
  writable_of(g, 10'000, 1);
  CHECK(writable_of(g, 10'000, 0) < 2'000);
  CHECK(writable_of(g, 10'000, 0) == 0);
}
