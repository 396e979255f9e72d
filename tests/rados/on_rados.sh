#!/bin/bash
# Runs a program on a store of its own in RADOS:  on_rados.sh OOC METAD NAMESPACE [--served] PROGRAM [ARGUMENTS...]
#
# The store's URL is in OOC_TEST_STORE.  With --served METAD (ooc-metad) has the metadata, so that the program may be
# several processes.  The status is the program's, or 1 where the server does not stop, or `ooc verify` finds something
# wrong.
set -euo pipefail
ooc=$1 metad=$2
export OOC_TEST_STORE=rados:ooc/$3
shift 3
folder=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill $server 2>/dev/null || true; rm -rf "$folder"' EXIT
"$ooc" --store "$OOC_TEST_STORE" init >/dev/null
if [[ $1 == --served ]]; then
  shift
  mkfifo "$folder/log"
  "$metad" --folder "$folder/metad" --database "$OOC_TEST_STORE" --listen 127.0.0.1:0 >"$folder/log" 2>&1 &
  server=$!
  exec 3<"$folder/log"
  while read -r line <&3 && [[ $line != *"listening on"* ]]; do echo "$line"; done
  cat <&3 >"$folder/rest" &
fi
status=0
"$@" || status=$?
"$ooc" verify --quiet --store "$OOC_TEST_STORE" || status=1
if [[ -n $server ]]; then
  kill "$server"
  wait "$server" || status=1
  server=
fi
exit "$status"
