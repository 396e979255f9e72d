// Changes of the files of arrays that rank 0 makes for all, and what becomes of the arrays where a rank does not learn
// what has come of it: their files may be others by then than the arrays take them for.
//
// Collective: what one rank throws, all throw.  Threads: one, with no other use of the arrays meanwhile.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "oocarray/error.hpp"
#include "runtime/ranks/shared_array.hpp"

namespace ooc::detail {

/// From now on nothing is read from the array's file, nor written to it: each transfer fails with `why`, which says
/// that the array must be opened again.
void refuse_all(shared_array& a, const failure& why);

/// Calls f, and where that throws io_error or another exception has the arrays refuse_all(), with what follows of it;
/// throws io_error.
void or_refuse_all(std::span<shared_array* const> arrays, const std::string& follows, const std::function<void()>& f);

/// What `change` has returned on rank 0, which alone calls it, once all ranks have come.  Where it has thrown, all
/// ranks throw the same, and the arrays are as before.  Who does not learn what has come of it, or whether rank 0 has
/// begun, has the arrays refuse_all().
process_group::bytes changed_by_rank_0(std::span<shared_array* const> arrays, const std::string& call,
                                       const std::string& follows, const std::function<process_group::bytes()>& change);

}  // namespace ooc::detail
