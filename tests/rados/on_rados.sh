#!/bin/bash
# Runs a program on a store of its own in RADOS:
#
#   on_rados.sh OOC METAD NAMESPACE [--served | --gateways IOD] PROGRAM [ARGUMENTS...]
#
# The store's URL is in OOC_TEST_STORE.  With --served METAD (ooc-metad) has the metadata, so that the program may be
# several processes; with --gateways the store is reached through two gateways besides (IOD is ooc-iod).  The status is
# the program's, or 1 where a server does not stop, or `ooc verify` finds something wrong.
set -euo pipefail
ooc=$1 metad=$2
export OOC_TEST_STORE=rados:ooc/$3
shift 3
folder=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT

# Starts a server, and leaves the address that it listens on in $address.
start_server() {
  local log=$folder/log-${#servers[@]}
  mkfifo "$log"
  "$@" >"$log" 2>&1 &
  servers+=($!)
  exec 3<"$log"
  while read -r line <&3 && [[ $line != *"listening on"* ]]; do echo "$line"; done
  address=${line##*listening on }
  cat <&3 >"$log.rest" &
}

"$ooc" --store "$OOC_TEST_STORE" init >/dev/null
if [[ $1 == --served || $1 == --gateways ]]; then
  gateways=()
  [[ $1 == --served ]] || gateways=(--gateways 2)
  start_server "$metad" --folder "$folder/metad" --database "$OOC_TEST_STORE" --listen 127.0.0.1:0 "${gateways[@]}"
  if [[ $1 == --gateways ]]; then
    iod=$2
    shift
    served=$address
    for number in 0 1; do
      start_server "$iod" --backend "$OOC_TEST_STORE" --node "$number" --metad "$served" --listen 127.0.0.1:0
    done
    OOC_TEST_STORE=ooc://$served
  fi
  shift
fi
status=0
"$@" || status=$?
"$ooc" verify --quiet --store "$OOC_TEST_STORE" || status=1
for server in "${servers[@]}"; do
  kill "$server"
  wait "$server" || status=1
done
servers=()
exit "$status"
