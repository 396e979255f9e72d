#include "measure/stxxl_sort.hpp"

#include <stdexcept>

#include "measure/stopwatch.hpp"

#ifdef OOC_BENCH_STXXL
#include <cstdlib>
#include <limits>
#include <stxxl/mng>
#include <stxxl/sort>
#include <stxxl/vector>
#endif

namespace bench {

#ifdef OOC_BENCH_STXXL

namespace {

struct less {
  bool operator()(std::uint64_t x, std::uint64_t y) const { return x < y; }
  static std::uint64_t min_value() { return std::numeric_limits<std::uint64_t>::min(); }
  static std::uint64_t max_value() { return std::numeric_limits<std::uint64_t>::max(); }
};

}  // namespace

bool stxxl_is_here() { return true; }

double seconds_of_stxxl_sort(const std::string& disk, std::size_t n, std::uint64_t memory) {
  // It would write them where the program was started.
  ::setenv("STXXLLOGFILE", "/dev/null", 1);
  ::setenv("STXXLERRLOGFILE", "/dev/null", 1);
  stxxl::disk_config d(disk, 2 * n * sizeof(std::uint64_t) + (std::uint64_t{256} << 20), "syscall");
  d.direct = stxxl::disk_config::DIRECT_TRY;
  stxxl::config::get_instance()->add_disk(d);
  using vector = stxxl::VECTOR_GENERATOR<std::uint64_t>::result;
  vector v(n);
  {
    random_keys next;
    vector::bufwriter_type writer(v.begin());
    for (std::size_t i = 0; i < n; ++i) writer << next();
    writer.finish();
  }
  v.flush();
  // Its vectors and blocks in flight need some beside.
  const double seconds = seconds_of([&] {
    stxxl::sort(v.begin(), v.end(), less(), memory * 7 / 8);
    v.flush();
  });
  std::uint64_t last = 0;
  for (vector::bufreader_type reader(v); !reader.empty(); ++reader) {
    if (*reader < last) throw std::runtime_error("algorithms: STXXL has not sorted");
    last = *reader;
  }
  return seconds;
}

#else

bool stxxl_is_here() { return false; }

double seconds_of_stxxl_sort(const std::string&, std::size_t, std::uint64_t) {
  throw std::runtime_error("algorithms: built without STXXL (libstxxl-dev)");
}

#endif

}  // namespace bench
