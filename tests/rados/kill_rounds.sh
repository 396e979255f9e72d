#!/bin/bash
# Jacobi on four ranks while parts of what it needs are killed:
#   kill_rounds.sh METAD JACOBI ROUNDS [SEED]
#
# CEPH_CONF names the cluster of ceph_cluster.sh, whose folder has the process ids of its daemons.  In each round one OSD
# is killed and started again, or loses its folder and is made anew, or is taken out of the cluster and back, or the
# metadata server is killed, beside which another stands by.  The result must be that of the undisturbed run.  Prints the totals; status 1 where a result is
# wrong, or a run ends in failure or not within 5 minutes.
set -euo pipefail
metad=$1 jacobi=$2 rounds=$3 seed=${4:-$RANDOM}
RANDOM=$seed
here=$(cd "$(dirname "$0")" && pwd)
cluster=$(dirname "$CEPH_CONF")
url=rados:ooc/rounds-$$
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
echo "kill_rounds.sh: seed $seed"

servers=0
pids=()
start_osd() { setsid timeout 3600 ceph-osd -i "$1" --foreground </dev/null >>"$cluster/start.log" 2>&1 & }
# It holds its files until it is gone.
kill_osd() {
  local pid
  pid=$(cat "$cluster/osd.$1.pid")
  kill -KILL "$pid"
  timeout 20 tail --pid="$pid" -f /dev/null
}
start_metad() {
  servers=$((servers + 1))
  "$metad" --folder "$folder/metad-$servers" --database "$url" --listen 127.0.0.1:0 >"$folder/$servers.log" 2>&1 &
  pids[servers]=$!
}
# Those that have had their turn; the last of them has it.
served() { grep -l 'listening on' $(ls -tr "$folder"/*.log) 2>/dev/null || true; }
wait_for() {  # until the command succeeds, at most 90 s
  local until=$((SECONDS + 90))
  while ((SECONDS < until)); do
    if "$@"; then return 0; fi
    read -rt 0.1 <> <(:) || true
  done
  echo "kill_rounds.sh: '$*' has not come true within 90 s" >&2
  return 1
}
healthy() { ceph pg stat 2>/dev/null | grep -qE '^3[23] pgs: 3[23] active\+clean[;,]'; }
has_served() { (($(served | wc -l) >= $1)); }
run_jacobi() {
  timeout 300 "$here/../../scripts/ooc-mpirun" 4 "$jacobi" --store "$url" --size 1024 --iterations 24 --fuse 1 \
    --memory 8M --quiet --json 2>>"$folder/jacobi.err" | tail -n 1 | grep -oE '"(checksum|sum|residual)":[^,}]*'
}

start_metad
wait_for has_served 1
start_metad  # stands by
right=$(run_jacobi)
[[ -n $right ]] || { cat "$folder/jacobi.err" >&2; exit 1; }
wrong=0 osds=0 metads=0 outs=0 folders=0
for ((round = 1; round <= rounds; ++round)); do
  wait_for healthy
  run_jacobi >"$folder/result" &
  running=$!
  read -rt "0.$((RANDOM % 90 + 10))" <> <(:) || true
  osd=$((RANDOM % 3))
  case $((RANDOM % 4)) in
    0)
      osds=$((osds + 1))
      kill_osd "$osd"
      read -rt "$((RANDOM % 6))" <> <(:) || true
      start_osd "$osd"
      ;;
    1)
      metads=$((metads + 1))
      before=$(served | wc -l)
      active=$(basename "$(served | tail -n 1)" .log)
      kill -KILL "${pids[active]}"
      start_metad
      wait_for has_served $((before + 1))
      ;;
    2)
      outs=$((outs + 1))
      ceph osd out "$osd" >/dev/null 2>&1
      read -rt "$((RANDOM % 4))" <> <(:) || true
      ceph osd in "$osd" >/dev/null 2>&1
      ;;
    3)
      folders=$((folders + 1))
      kill_osd "$osd"
      rm -rf "$cluster/osd.$osd"
      mkdir "$cluster/osd.$osd"
      uuid=$(cat /proc/sys/kernel/random/uuid)
      wait_for ceph osd destroy "$osd" --yes-i-really-mean-it >/dev/null 2>&1
      ceph osd new "$uuid" "$osd" >/dev/null
      ceph-osd -i "$osd" --mkfs --osd-uuid "$uuid" >>"$cluster/osd.$osd.out" 2>&1
      start_osd "$osd"
      ;;
  esac
  status=0
  wait "$running" || status=$?
  if [[ $status -ne 0 || $(cat "$folder/result") != "$right" ]]; then
    wrong=$((wrong + 1))
    echo "round $round: status $status, '$(cat "$folder/result")' in place of '$right'" >&2
    tail -n 5 "$folder/jacobi.err" >&2
  fi
done
echo "kill_rounds.sh: $rounds rounds, $osds with an OSD killed, $folders with its folder removed, $metads with the metadata server killed, $outs with an OSD out and in: $wrong wrong"
((wrong == 0))
