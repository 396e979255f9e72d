#!/bin/bash
# servers_killed.sh RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: an MPI program that writes and reads in all ways goes on when
# I/O servers and the metadata server are killed and started again.
set -euo pipefail
ranks=$1 mpirun=$2 program=$3 ooc=$4 components=$5 scratch=$6

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
trap 'touch stop; "$ooc" down --dir servers >/dev/null' EXIT
OOC_STORE=$("$ooc" up --port 0 --nodes 2 --dir servers | tail -1)
export OOC_STORE OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
exec 3< <("$mpirun" "$ranks" "$program" ooc: keeps_going 2>messages; echo "ended with $?")
rounds() {
  local line
  for ((n = 0; n < $1; ++n)); do
    if ! read -r line <&3 || [[ $line != "keeps_going: round "* ]]; then
      echo "$line"
      cat messages
      exit 1
    fi
  done
}
rounds 5
for server in iod-0 metad iod-1 metad; do
  read -r pid _ <"servers/run/$server.pid"
  kill -9 "$pid"
  "$ooc" up --dir servers >/dev/null
  rounds 10
done
touch stop
while read -r line <&3; do last=$line; done
[[ $last == "ended with 0" ]] || { echo "$last"; cat messages; exit 1; }
"$ooc" verify
