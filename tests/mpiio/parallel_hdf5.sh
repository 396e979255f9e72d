#!/bin/bash
# parallel_hdf5.sh PYTHON PROGRAM RANKS MPIRUN - OOC COMPONENTS SCRATCH: what parallel HDF5 writes into a store on several ranks is what
# serial HDF5 finds in the file that is copied out of it.
set -euo pipefail
python=$1 program=$2 ranks=$3 mpirun=$4 ooc=$6 components=$7 scratch=$8

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
store=local:$scratch/n0,$scratch/n1
"$ooc" --store "$store" init >init.out
OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components "$mpirun" "$ranks" "$python" "$program" write "ooc:$store/a.h5"
"$ooc" --store "$store" cp a.h5 ./a.h5
[[ $("$python" "$program" check a.h5) == "written on $ranks ranks" ]]
"$ooc" --store "$store" verify
