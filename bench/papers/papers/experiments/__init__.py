"""The experiments by name, in the order in which they run.

Each is a module with TITLE and run(context) -> Outcome.
"""

from papers.experiments import channels, pvfs

EXPERIMENTS = {
    "pvfs": pvfs,
    "channels": channels,
}
