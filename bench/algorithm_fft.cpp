// The row of `oocbench algorithms` about Fourier transforms:
//
//     fft_over_bound   ooc::fft() of complex doubles, eight times the budget, into another array: time / direct I/O
//                      that copies a file of as many bytes twice, and as many lines in memory of the root of the length,
//                      transformed by the same kernel with 2 threads, one after the other
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <stdexcept>
#include <thread>
#include <vector>

#include "algorithm_passes.hpp"
#include "measure/child.hpp"
#include "measure/memory_cap.hpp"
#include "measure/paired_ratio.hpp"
#include "measure/raw_io.hpp"
#include "measure/scratch.hpp"
#include "oocarray/algorithm/fft.hpp"

namespace bench {
namespace {

using namespace ooc::literals;
using complex = std::complex<double>;
using vector = ooc::ooc_array<complex, 1>;

constexpr std::uint64_t slack = 64_MiB;

/// Frequencies that the vector is made of, with amplitudes 1, 2, ...
constexpr std::array<std::size_t, 3> frequencies = {3, 1001, 70'001};

json transformed(const std::filesystem::path& folder, std::uint64_t budget, std::size_t n) {
  drop_cache(folder);
  return in_child(budget + slack, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const ooc::store store = ooc::store::open("local:" + folder.string());
    const vector x{rt, store, "x", ooc::open};
    vector y{rt, store, "y", ooc::open};
    json out;
    put_times(out, [&] {
      const auto done = ooc::fft(x, y);  // durable when it returns
      out["passes"] = done.passes;
      out["bytes"] = done.bytes_read + done.bytes_written;
    });
    for (std::size_t f = 0; f < frequencies.size(); ++f)
      if (std::abs(std::as_const(y)[frequencies[f]] - static_cast<double>((f + 1) * n)) > 1e-9 * static_cast<double>(n))
        throw std::runtime_error("algorithms: a Fourier transform is wrong");
    return out;
  });
}

/// Seconds of all lines of both passes, of which an eighth is run.
double lines_in_memory(std::size_t n) {
  return in_child(0,
                  [n] {
                    const auto length = static_cast<std::size_t>(std::sqrt(static_cast<double>(n)));
                    const std::size_t lines = n / length / 8;
                    std::vector<complex> memory(lines * length, complex(1, 1));
                    const auto half = [&](std::size_t me) {
                      ooc::detail::eigen_line<double> line(length, ooc::detail::fft_direction::forward);
                      for (std::size_t k = me; k < lines; k += 2)
                        line.run(reinterpret_cast<std::byte*>(memory.data() + k * length));
                    };
                    json out;
                    put_times(out, [&] {
                      std::thread second(half, 1);
                      half(0);
                      second.join();
                    });
                    out["seconds"] =
                        out["seconds"].get<double>() * 2 * static_cast<double>(n) / static_cast<double>(lines * length);
                    return out;
                  })["seconds"]
      .get<double>();
}

}  // namespace

void measure_fft(const options& o, json& out) {
  const std::uint64_t budget = o.memory_or(64_MiB);
  const std::size_t n = 8 * budget / sizeof(complex), bytes = n * sizeof(complex);
  require_space(o.dir, 5 * bytes + 256_MiB);
  const std::filesystem::path folder = fresh_folder(o.dir, "fft"), from = o.dir / "fft.a", to = o.dir / "fft.b";
  in_child(0, [&] {
    ooc::runtime rt{ooc::runtime_options{.memory = budget}};
    const ooc::store store = ooc::store::open("local:" + folder.string());
    vector x{rt, store, "x", ooc::create, {n}}, y{rt, store, "y", ooc::create, {n}};
    x.overwrite(x.whole());
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t f = 0; f < frequencies.size(); ++f)
        x[j] += static_cast<double>(f + 1) * ooc::detail::root_of_unity(1, frequencies[f] * j % n, n);
    for (const auto& file : {from, to}) raw::make_file(file, bytes);
    return json::object();
  });
  paired_ratio over_bound("fft_over_bound"), seconds("fft_seconds"), transfers("fft_transfer_seconds"),
      lines("fft_line_seconds");
  json one;
  for (unsigned k = 0; k < o.rounds_or(3); ++k) {
    one = transformed(folder, budget, n);
    const double moved = raw::direct_copy(from, to) + raw::direct_copy(to, from), computed = lines_in_memory(n);
    over_bound.add(one["seconds"].get<double>(), moved + computed);
    seconds.add(one["seconds"].get<double>());
    transfers.add(moved);
    lines.add(computed);
  }
  for (const paired_ratio* r : {&over_bound, &seconds, &transfers, &lines}) r->put(out);
  out["fft_passes"] = one["passes"];
  out["fft_bytes_of_vector"] = one["bytes"].get<double>() / static_cast<double>(bytes);
  out["fft_processor_seconds"] = one["processor"];
}

}  // namespace bench
