// Functions of passes, and kernels, that write to tables of their own: where a processor has instructions that gather
// and scatter, elements of one vector that meet in a table must not lose an update.
//
// scattering_functions.cpp is compiled for such processors, this file for any.
#include <cstdio>
#include <string>
#include <vector>

/// Where updates were lost.
std::vector<std::string> lost_updates();

int main() {
  constexpr int skipped = 77;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    std::puts("not run: this processor has no AVX-512");
    return skipped;
  }
  const std::vector<std::string> lost = lost_updates();
  for (const std::string& where : lost) std::printf("lost updates: %s\n", where.c_str());
  return lost.empty() ? 0 : 1;
}
