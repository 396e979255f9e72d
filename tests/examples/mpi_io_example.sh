#!/bin/bash
# mpi_io_example.sh PROGRAM MPIRUN OOC COMPONENTS SCRATCH: the program finds on 3 ranks what it has written into a store, twice into the same
# file.  In a mount of the store, which PnetCDF needs.
set -euo pipefail
program=$1 mpirun=$2 ooc=$3 components=$4 scratch=$5

[[ -w /dev/fuse ]] || { echo "SKIPPED: no /dev/fuse"; exit 0; }
rm -rf "$scratch"
mkdir -p "$scratch/mount"
export OOC_STORE=local:$scratch/n0,$scratch/n1
"$ooc" init >"$scratch/init.out"
"$ooc" mount "$OOC_STORE" "$scratch/mount" || { echo "SKIPPED: nothing can be mounted here"; exit 0; }
trap '"$ooc" umount -l "$scratch/mount"' EXIT
cd "$scratch/mount"
export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
for _ in 1 2; do "$mpirun" 3 "$program" ooc:a | grep -x '2048 x 2048 elements on 3 ranks: right'; done
cd /
"$ooc" verify
