#!/bin/bash
# with_other_version.sh PRELOADED RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: components of another minor version are
# refused, one line says so, and plain files are as before.
set -euo pipefail
preloaded=$1 ranks=$2 mpirun=$3 program=$4 components=$6 scratch=$7

rm -rf "$scratch"
mkdir -p "$scratch/plain"
cd "$scratch"
export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
"$mpirun" "$ranks" env LD_PRELOAD="$preloaded" "$program" plain/ explicit_offsets 2>messages
cat messages
[[ $(grep -c "built for Open MPI 4.1 and are not used: this is 'Open MPI v4.2.7" messages) == 1 ]]
