#!/bin/bash
# Kills a program that commits its steps, and lets another go on:  killed_example.sh LAUNCHER... PROGRAM
#
# LAUNCHER, where there is one, runs it on ranks.  Fails where the one that goes on does not begin at a step that the
# killed one has printed, or one later, or finds another result than it should.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
options=(--size 400 --memory 2M --store "local:$folder/store" --commit-every 1 --keep --quiet)
mkfifo "$folder/out"
"$@" "${options[@]}" --iterations 1000000 >"$folder/out" 2>/dev/null &
leader=$!
seen=0
while read -r word number _; do
  [[ $word == iteration ]] && seen=$number
  ((seen >= 20)) && break
done <"$folder/out"
# mpirun's ranks are in sessions of their own.
mapfile -t all < <(pgrep -f "$folder/store" || true)
kill -KILL "${all[@]}" 2>/dev/null || true
wait "$leader" || true
for pid in "${all[@]}"; do tail --pid="$pid" -f /dev/null; done
((seen >= 20)) || { echo "the program ended before it was killed"; exit 1; }
out=$("$@" "${options[@]}" --stage compute --iterations 3)
echo "$out"
[[ $out == *"the result is right"* ]]
