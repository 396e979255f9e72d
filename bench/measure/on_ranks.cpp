#include "measure/on_ranks.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>

namespace bench {

#ifdef OOC_BENCH_RANKS_PROGRAM

namespace {

void add_quoted(std::string& command, const std::string& word) {
  command += '\'';
  for (const char c : word)
    if (c == '\'')
      command.append("'\\''");
    else
      command += c;
  command.append("' ");
}

}  // namespace

json on_ranks(const options& o, const std::string& name, const std::string& url) {
  const unsigned ranks = o.ranks_or(4);
  std::string command;
  for (const std::string& word :
       {std::string(OOC_BENCH_MPIRUN), std::to_string(ranks), std::string(OOC_BENCH_RANKS_PROGRAM), name, url,
        std::to_string(o.memory), std::to_string(o.rounds)})
    add_quoted(command, word);
  std::FILE* const out = ::popen(command.c_str(), "r");
  if (!out) throw std::runtime_error("cannot start " + command);
  std::string text;
  std::array<char, 4096> part;
  while (const std::size_t n = std::fread(part.data(), 1, part.size(), out)) text.append(part.data(), n);
  if (const int status = ::pclose(out); status != 0)
    throw std::runtime_error("the ranks ended with status " + std::to_string(status) + ": " + command);
  json result{{"ranks", ranks}};
  result.update(json::parse(text));
  return result;
}

#else

json on_ranks(const options&, const std::string& name, const std::string&) {
  throw std::runtime_error("oocbench " + name + " needs MPI: install libopenmpi-dev and openmpi-bin, and build again");
}

#endif

}  // namespace bench
