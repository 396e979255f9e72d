// Commits: the last consistent state of several arrays, whatever happens to the program.
//
//   ooc::ooc_array<double, 2> u(rt, s, "u", ooc::create, {n, n}, {.commits = true});
//   ooc::ooc_array<double, 2> v(rt, s, "v", ooc::create, {n, n}, {.commits = true});
//   ... a step ...
//   ooc::commit({&u, &v}, {{"step", "1200"}});
//
// A commit makes the present elements, extents and attributes of the arrays their last commit, all of them or none.
// When it returns it is durable.  If a process is killed or the power fails, at any moment, then all arrays that were
// committed together are at that commit or all are at the next; never older than the last call that returned.
//
// An array with commits is opened for writing by one program at a time (all ranks of its group), which begins at the
// last commit: what an earlier program wrote and did not commit is gone, also where it has closed the array.  Everybody
// else, who opens it for reading only (arrays, files, mounts, the command `ooc`), sees the last commit there was when
// he opened it.  He may stay until the next commit has been made and the first write after it: from then on each node
// that has been written to refuses all his reads (errc::conflict), also of elements that nobody has changed.  A sparse
// array gives back space with the next commit, and what that has changed is refused from then on together with all
// else. docs/reliability.md has the whole contract.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>

namespace ooc {

class array_base;

struct commit_info {
  std::uint64_t number = 0;                         ///< from 1; 0: nothing was committed since the array was made
  std::chrono::system_clock::time_point time = {};  ///< when, by the clock of who made it
  std::map<std::string, std::string> attributes;    ///< given with it
};

/// Makes the present state of all these arrays their next commit.  `attributes`, at most 1 MiB of text, are kept with
/// it (array_base::last_commit).
///
/// Collective over the group of the arrays, which must have one of as many ranks each; they lie in one store.  It
/// begins as array_base::sync() does, and no other thread may use the arrays meanwhile.  It takes the time of making
/// durable what was written since the last commit.
///
/// Throws the same on all ranks, what sync() throws, and usage_error (errc::invalid_request) for an array that was made
/// without options.commits, is read-only, or lies in another store.  After a failure nothing was committed, and the
/// arrays go on as they are.  Only where the metadata server does not say whether it has carried the commit out
/// (io_error, "nobody knows whether the commit was made"), reading and writing fail until the arrays are rolled back or
/// opened again.
void commit(std::span<array_base* const> arrays, const std::map<std::string, std::string>& attributes = {});
inline void commit(std::initializer_list<array_base*> arrays,
                   const std::map<std::string, std::string>& attributes = {}) {
  commit(std::span<array_base* const>(arrays.begin(), arrays.size()), attributes);
}

}  // namespace ooc
