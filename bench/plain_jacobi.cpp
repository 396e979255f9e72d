#include "plain_jacobi.hpp"

#include "measure/child.hpp"
#include "measure/raw_io.hpp"
#include "measure/rival_memory.hpp"
#include "measure/stopwatch.hpp"

namespace bench {

json mapped_jacobi(const jacobi_setting& s, unsigned steps, int advice, const std::function<void()>& finish) {
  return in_child(s.cap(), [&] {
    const mapped_file a(s.plain_a, advice), b(s.plain_b, advice);
    const std::size_t n = s.n;
    const auto sweep = [n](const double* from, double* to) {
      for (std::size_t i = 1; i + 1 < n; ++i)
        for (std::size_t j = 1; j + 1 < n; ++j)
          to[i * n + j] =
              0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
    };
    json out;
    out["seconds"] = seconds_of([&] {
      for (unsigned k = 0; k < steps; ++k) k % 2 ? sweep(b.data(), a.data()) : sweep(a.data(), b.data());
      finish();
    });
    out["fingerprint"] = fingerprint(n, [&](std::size_t i, std::size_t j) { return a.data()[i * n + j]; });
    return out;
  });
}

void make_jacobi_arrays(const jacobi_setting& s) {
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = s.budget}};
    const ooc::store store = ooc::store::open("local:" + s.store.string());
    for (const char* name : {"a", "b"}) {
      ooc::ooc_array<double, 2> m{rt, store, name, ooc::create, {s.n, s.n}, {.replace = true}};
      m.overwrite(m.whole());
      for (std::size_t i = 0; i < s.n; ++i)
        for (std::size_t j = 0; j < s.n; ++j) m[i][j] = start_value(i, j);
      m.close();
    }
    return json::object();
  });
}

void make_jacobi_files(const jacobi_setting& s) {
  in_child(0, [&] {
    for (const auto& file : {s.plain_a, s.plain_b}) {
      if (!std::filesystem::exists(file)) raw::make_file(file, s.bytes());
      const mapped_file m(file, MADV_NORMAL);
      for (std::size_t i = 0; i < s.n; ++i)
        for (std::size_t j = 0; j < s.n; ++j) m.data()[i * s.n + j] = start_value(i, j);
    }
    return json::object();
  });
}

}  // namespace bench
