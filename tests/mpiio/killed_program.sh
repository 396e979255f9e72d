#!/bin/bash
# killed_program.sh RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: what an MPI program had reserved when all its ranks were killed goes
# back when the file is opened for writing next, and not before.
set -euo pipefail
ranks=$1 mpirun=$2 program=$3 ooc=$4 components=$5 scratch=$6

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
export OOC_STORE=local:$scratch/n0,$scratch/n1 OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
"$ooc" init >init.out
stored() { find n0/shares n1/shares -name '*.data' -printf '%s\n' | awk '{ sum += $1 } END { print sum }'; }

if "$mpirun" "$ranks" "$program" ooc: killed >out 2>&1; then
  echo "the program was not killed"
  exit 1
fi
size=$((ranks * 6 * 400000))
[[ $("$ooc" cat killed | wc -c) == "$size" ]]
reserved=$(stored)
((reserved > size)) || { echo "nothing was reserved: $reserved bytes in stripe objects"; exit 1; }
"$mpirun" "$ranks" "$program" ooc: opened_after_killed >out
grep -q "opened_after_killed: size $size" out
(($(stored) - size < 2 * 4096)) || { echo "of $reserved bytes $(stored) are left, not $size in whole chunks"; exit 1; }
"$ooc" verify
