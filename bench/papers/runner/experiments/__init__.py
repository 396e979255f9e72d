"""The experiments by name, in the order in which they run.

Each is a module with TITLE and run(context) -> Outcome.
"""

from runner.experiments import (beowulf, btio, channels, gauss_seidel, poccs_inner, poccs_jacobi, pvfs,
                                scaling)

EXPERIMENTS = {
    "pvfs": pvfs,
    "channels": channels,
    "scaling": scaling,
    "btio": btio,
    "beowulf": beowulf,
    "poccs_inner": poccs_inner,
    "poccs_jacobi": poccs_jacobi,
    "gauss_seidel": gauss_seidel,
}
