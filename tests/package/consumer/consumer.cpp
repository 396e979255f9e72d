// A program of a user: only installed headers, only oocarray::oocarray.
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <oocarray/block_file.hpp>
#include <oocarray/file.hpp>
#include <oocarray/ooc_array.hpp>
#include <string>

int main(int, char** argv) {
  using namespace ooc::literals;
  ooc::runtime rt{{.memory = 16_MiB, .block = 0, .read_ahead = 0, .on_fatal = {}}};
  const auto store = ooc::store::open(std::string("local:") + argv[1], {.workers = 2});
  ooc::ooc_array<double, 2> a{rt, store, "numbers", ooc::create, {10, 10}};
  for (std::size_t i = 0; i < 10; ++i)
    for (std::size_t j = 0; j < 10; ++j) a[i][j] = static_cast<double>(10 * i + j);
  a.writeback(ooc::durable);
  std::printf("sum %g\n", std::accumulate(a.begin(), a.end(), 0.0));
}
