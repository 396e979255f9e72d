# Runs PROGRAM, if there is a LAUNCHER on RANKS ranks by it, in FOLDER, which is empty before, and goes afterwards where all was well.
file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${LAUNCHER} ${RANKS} ${PROGRAM} WORKING_DIRECTORY ${FOLDER} COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE ${FOLDER})
