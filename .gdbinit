# A touch of a block that is not in memory is a signal, which the library handles: SIGSEGV for a block, SIGBUS for a
# part of one.  Faults of the program come to pass_on() last.  See docs/debugging.md.
handle SIGSEGV SIGBUS nostop noprint pass
set breakpoint pending on
break 'ooc::detail::fault_handler::(anonymous namespace)::pass_on'
