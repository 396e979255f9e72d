// The row of `oocbench algorithms` about Fourier transforms:
//
//     fft_over_bound   ooc::fft() of complex doubles, eight times the budget, into another array: time / direct I/O
//                      that copies a file of as many bytes twice, and as many lines in memory, transformed by the
//                      same kernel with 2 threads, one after the other
//     fft_over_bound_in_pieces   the same beside direct I/O that moves the vector in pieces of 4 KiB, a transposition,
//                      as what is read and written first and last must be, and copies it once
#include <array>
#include <bit>
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

/// Seconds of all lines of a pass that have this length; an eighth of them is run.
double lines_in_memory(std::size_t n, std::size_t length) {
  return in_child(0,
                  [&] {
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
                    out["seconds"] = out["seconds"].get<double>() * 8;
                    return out;
                  })["seconds"]
      .get<double>();
}

}  // namespace

void measure_fft(const options& o, json& out) {
  const std::uint64_t budget = o.memory_or(64_MiB);
  const std::size_t n = std::bit_floor(8 * budget / sizeof(complex)), bytes = n * sizeof(complex);
  const std::size_t length = std::size_t{1} << std::countr_zero(n) / 2;  // of rows and columns, or half of that
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
  paired_ratio over_bound("fft_over_bound"), over_pieces("fft_over_bound_in_pieces"),
      piece_transfers("fft_piece_transfer_seconds"), seconds("fft_seconds"), transfers("fft_transfer_seconds"),
      lines("fft_line_seconds");
  json one;
  for (unsigned k = 0; k < o.rounds_or(3); ++k) {
    one = transformed(folder, budget, n);
    const double once = raw::direct_copy(from, to), moved = once + raw::direct_copy(to, from);
    const double in_pieces =
        once +
        raw::direct_transpose(
            to, from, std::bit_floor(static_cast<std::uint64_t>(std::sqrt(static_cast<double>(8 * bytes)))), 4_KiB);
    const double computed = lines_in_memory(n, length) + lines_in_memory(n, n / length);
    over_bound.add(one["seconds"].get<double>(), moved + computed);
    over_pieces.add(one["seconds"].get<double>(), in_pieces + computed);
    seconds.add(one["seconds"].get<double>());
    transfers.add(moved);
    piece_transfers.add(in_pieces);
    lines.add(computed);
  }
  for (const paired_ratio* r : {&over_bound, &over_pieces, &seconds, &transfers, &piece_transfers, &lines}) r->put(out);
  out["fft_passes"] = one["passes"];
  out["fft_bytes_of_vector"] = one["bytes"].get<double>() / static_cast<double>(bytes);
  out["fft_processor_seconds"] = one["processor"];
}

}  // namespace bench
