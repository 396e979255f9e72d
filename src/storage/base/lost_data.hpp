// Modified data that could be written nowhere while nobody was there to throw to: the process then ends with
// fatal_exit_status, whatever it returns, so that who started it does not go on with what is not there.
//
// Threads: any.
#pragma once

namespace ooc::detail {

/// Data are lost, which has been reported.  The process ends as it would have, its static objects and output
/// included, with fatal_exit_status at last.  Not so a child that it has forked before.
void data_were_lost() noexcept;

/// The data lost so far were lost on purpose: for tests.
void forget_lost_data() noexcept;

}  // namespace ooc::detail
