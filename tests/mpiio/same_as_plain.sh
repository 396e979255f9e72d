#!/bin/bash
# same_as_plain.sh local|served RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: the program says the same, and leaves the same
# files, on a store as in a plain folder; PROGRAM is one that knows nothing of oocarray.
set -euo pipefail
kind=$1 ranks=$2 mpirun=$3 program=$4 ooc=$5 components=$6 scratch=$7

rm -rf "$scratch"
mkdir -p "$scratch/plain"
cd "$scratch"
"$mpirun" "$ranks" "$program" plain/ >plain.out

if [[ $kind == served ]]; then
  trap '"$ooc" down --dir servers >/dev/null' EXIT
  store=$("$ooc" up --port 0 --nodes 2 --dir servers | tail -1)
  prefix=${store%/}/
else
  store=local:$scratch/n0,$scratch/n1
  prefix=ooc:$store/
  "$ooc" --store "$store" init >init.out
fi
export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
"$mpirun" "$ranks" "$program" "$prefix" >store.out
diff plain.out store.out
for file in plain/*; do
  name=${file##*/}
  "$ooc" --store "$store" export -q --format raw "$name" "$scratch/exported"
  cmp "$file" exported
  rm exported
done
[[ $("$ooc" --store "$store" ls | wc -l) == $(find plain -type f | wc -l) ]]
"$ooc" --store "$store" stat hints | grep -q 'nn 2, sf 8192'
"$ooc" --store "$store" verify

# What OMPIO does not do on a plain file, and the store's address from the environment
OOC_STORE=$store "$mpirun" "$ranks" "$program" ooc: nonblocking_at_the_end
if [[ $kind == local ]]; then OOC_STORE=$store "$mpirun" "$ranks" "$program" ooc: short_memory; fi
