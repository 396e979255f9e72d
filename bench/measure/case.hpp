// What a benchmark case is, and the list of them.
//
// A case answers one question with ratios: ours against the limit of the machine or against the
// program that a user would otherwise write, measured in turns in the same run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace bench {

using json = nlohmann::ordered_json;

struct options {
  std::filesystem::path dir;          ///< scratch space, removed afterwards by main
  std::uint64_t memory = 0;           ///< budget of the runtime, bytes; 0: the case's own
  unsigned rounds = 0;                ///< pairs of runs; 0: the case's own
  unsigned nodes = 0;                 ///< I/O servers of a served store; 0: the case's own
  std::string url{};                  ///< of the store, for cases on ranks and in RADOS
  double seconds = 0;                 ///< that a run may take, for cases that bound it; 0: the case's own
  unsigned clients = 0;               ///< of `scale`; 0: its own
  unsigned ranks = 0;                 ///< of cases that run on several; 0: the case's own
  std::vector<std::string> only{};    ///< rows of a case that has many, or parts of one; empty: all
  std::vector<std::string> traces{};  ///< recordings that `policy` replays; empty: the generated ones
  bool vary = false;                  ///< `policy` with other numbers
  bool full = false;                  ///< the sizes of large machines, for cases that have them

  std::uint64_t memory_or(std::uint64_t d) const noexcept { return memory ? memory : d; }
  unsigned rounds_or(unsigned d) const noexcept { return rounds ? rounds : d; }
  unsigned ranks_or(unsigned d) const noexcept { return ranks ? ranks : d; }
};

struct bench_case {
  const char* name;
  const char* question;
  json (*run)(const options&);
};

json run_resident(const options& o);
json run_fault(const options& o);
json run_stream(const options& o);
json run_jacobi(const options& o);
json run_tile(const options& o);
json run_lru(const options& o);
json run_store(const options& o);
json run_wire(const options& o);
json run_coherence(const options& o);
json run_collective(const options& o);
json run_algorithms(const options& o);
json run_patterns(const options& o);
json run_policy(const options& o);
json run_in_place(const options& o);
json run_packed(const options& o);
json run_commit(const options& o);
json run_mount(const options& o);
json run_scale(const options& o);

inline constexpr bench_case cases[] = {
    {"resident", "what does an element cost when everything is in memory?", run_resident},
    {"fault", "what does bringing a block in and another out cost, without the transfer?", run_fault},
    {"stream", "how much of the disk's speed does a sweep get?", run_stream},
    {"jacobi", "is a stencil on arrays larger than memory faster than on mapped files?", run_jacobi},
    {"tile", "what do tiles of a large matrix cost?", run_tile},
    {"store", "how much of what sockets carry does a served store deliver?", run_store},
    {"wire", "what do encryption and a link of 1 Gbit/s leave of what sockets carry?", run_wire},
    {"lru", "how close to exact LRU is the replacement?", run_lru},
    {"coherence", "what do ranks read again after others have written?", run_coherence},
    {"collective", "what do ranks gain that read and write interleaved columns together?", run_collective},
    {"algorithms", "what do the library's algorithms gain over the loops that everybody writes?", run_algorithms},
    {"patterns", "what do other access patterns cost beside a mapped file?", run_patterns},
    {"policy", "what do the pager's choices come to beside textbook replacement?", run_policy},
    {"packed", "what does a packed array cost, or save, beside a plain one?", run_packed},
    {"in_place", "what does a file cost that is used where it lies, beside an imported one?", run_in_place},
    {"commit", "what do commits cost beside durable write-back, and beside copying everything?", run_commit},
    {"scale", "what do many clients of many servers take, and how long do they wait?", run_scale},
#ifdef OOC_BENCH_MOUNT
    {"mount", "what does a mounted store cost beside ooc::file and a mount of files in memory?", run_mount},
#endif
};

}  // namespace bench
