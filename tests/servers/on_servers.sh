#!/bin/bash
# Runs a program on a served store of its own:  on_servers.sh OOC NODES PROGRAM [ARGUMENTS...]
#
# OOC is the ooc command; the store's URL is in OOC_TEST_STORE.  The status is the program's, or 1
# where the servers cannot be started or do not stop, or `ooc verify` finds something wrong.
set -euo pipefail
ooc=$1
nodes=$2
shift 2
folder=$(mktemp -d)
trap '"$ooc" down --dir "$folder/store" >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
OOC_TEST_STORE=$("$ooc" up --nodes "$nodes" --dir "$folder/store" --port 0 | tail -n 1)
export OOC_TEST_STORE
status=0
"$@" || status=$?
"$ooc" verify --quiet --store "$OOC_TEST_STORE" || status=1
"$ooc" down --dir "$folder/store" || status=1
exit "$status"
