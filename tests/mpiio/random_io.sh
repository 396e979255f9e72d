#!/bin/bash
# random_io.sh RANDOM_IO RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: random MPI-IO on a store of two nodes, with the shared
# pointer in memory and in the store.
set -euo pipefail
random_io=$1 ranks=$2 mpirun=$3 ooc=$5 components=$6 scratch=$7

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export OOC_STORE=local:$scratch/n0,$scratch/n1 OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
"$ooc" init
"$mpirun" "$ranks" "$random_io" ooc:a 200
export OMPI_MCA_sharedfp=^sm
"$mpirun" "$ranks" "$random_io" ooc:b 200
"$mpirun" "$ranks" "$random_io" ooc:c 200
"$ooc" verify
