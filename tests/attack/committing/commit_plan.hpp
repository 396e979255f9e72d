// A program that changes several arrays in steps and commits each step: what may be read after a crash follows.
//
// The seed alone decides what a step does to each array (elements, extents, an attribute), and which steps are rolled
// back.  The checker, another process, computes what every commit held.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attack/rank_history.hpp"
#include "oocarray/ooc_array.hpp"

namespace ooc::attack {

class commit_plan {
 public:
  commit_plan(std::uint64_t seed, std::string url, totals& t);

  static constexpr std::uint64_t steps = 80;

  /// The program, by itself or as one of many ranks; tells the board the last step whose commit has returned.  Each
  /// rank writes the elements whose number modulo the ranks is its own.
  void run(rank_board& board, const std::shared_ptr<process_group>& group = nullptr) const;
  /// All arrays are at the commit of step `kept`, or all are at the next one, and snapshots have what they should;
  /// throws a finding where it is not so.
  void check(std::uint64_t kept) const;
  /// The same by who opens them for writing, which waits so long for the program to be given up; goes on from there.
  void go_on(std::uint64_t kept, std::chrono::seconds patience) const;

 private:
  using array = ooc_array<std::uint64_t, 1>;
  /// An array as the program has it.
  struct content {
    std::vector<std::uint64_t> elements;
    std::string note;  ///< an attribute
  };
  struct change {
    std::size_t size = 0;
    struct run {
      std::size_t begin = 0, end = 0;
    };
    std::vector<run> runs;
    bool notes = false;
  };

  std::string path(std::size_t i) const { return "committed/" + std::to_string(i); }
  store open_store() const;
  runtime_options memory() const;
  std::size_t first_size(std::size_t i) const;
  change of(std::uint64_t step, std::size_t i, std::size_t size) const;
  bool rolled_back(std::uint64_t step) const;
  std::uint64_t next_commit(std::uint64_t step) const;
  /// What array `i` is after a step that was committed; step 0: as it was made.
  content after(std::uint64_t step, std::size_t i) const;
  /// A snapshot of what the commit of a step has, named by that.
  void keep(const store& s, std::uint64_t step) const;
  void check_kept(const store& s, runtime& rt) const;
  void check_content(const array& a, const std::string& what, const content& must) const;
  void check_one(const array& a, std::size_t i, std::uint64_t step) const;
  std::uint64_t step_of(const array& a, std::size_t i, std::uint64_t kept) const;

  std::uint64_t seed_;
  std::string url_;
  std::size_t arrays_;
  std::uint64_t block_, blocks_, stripe_;
  std::chrono::microseconds pause_;
  totals& totals_;
};

}  // namespace ooc::attack
