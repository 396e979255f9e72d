"""The experiments by name, in the order in which they run.

Each is a module with TITLE and run(context) -> Outcome.
"""

from runner.experiments import (beowulf, btio, channels, gauss_seidel, poccs_inner, poccs_jacobi,
                                poccs_jacobi_fused, pvfs, scaling)

EXPERIMENTS = {
    "pvfs": pvfs,
    "channels": channels,
    "scaling": scaling,
    "btio": btio,
    "beowulf": beowulf,
    "poccs_inner": poccs_inner,
    "poccs_jacobi": poccs_jacobi,
    "poccs_jacobi_fused": poccs_jacobi_fused,
    "gauss_seidel": gauss_seidel,
}
