#!/bin/bash
# Jacobi on four ranks while parts of what it needs are killed:
#   kill_rounds.sh METAD JACOBI ROUNDS [SEED]
#
# CEPH_CONF names the cluster of ceph_cluster.sh, with two monitors, whose folder has the process ids of its daemons.  In
# each round one of these happens at a random moment:
#
#     an OSD is killed and started again, or loses its folder and is made anew, or is taken out of the cluster and back
#     an OSD is added, and another one is taken out
#     one of the two monitors is killed, so that the other one can decide nothing, and started again
#     the metadata server is killed, beside which another stands by
#
# The result must be that of the undisturbed run.  Prints the totals; status 1 where a result is wrong, or a run ends in
# failure or not within 5 minutes.
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
start_daemon() { setsid timeout 3600 "ceph-${1%.*}" -i "${1#*.}" --foreground </dev/null >>"$cluster/start.log" 2>&1 & }
# It holds its files until it is gone.
kill_daemon() {
  local pid
  pid=$(cat "$cluster/$1.pid")
  kill -KILL "$pid"
  timeout 20 tail --pid="$pid" -f /dev/null
}
make_osd() {
  local uuid
  uuid=$(cat /proc/sys/kernel/random/uuid)
  mkdir "$cluster/osd.$1"
  ceph osd new "$uuid" "$1" >/dev/null
  ceph-osd -i "$1" --mkfs --osd-uuid "$uuid" >>"$cluster/osd.$1.out" 2>&1
}
pause() { read -rt "$1" <> <(:) || true; }
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
    pause 0.1
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
wrong=0
declare -A happened=([osd_killed]=0 [osd_folder_removed]=0 [osd_out_and_in]=0 [osd_added]=0 [monitor_killed]=0 [metad_killed]=0)
kinds=("${!happened[@]}")
for ((round = 1; round <= rounds; ++round)); do
  wait_for healthy
  run_jacobi >"$folder/result" &
  running=$!
  pause "0.$((RANDOM % 90 + 10))"
  osd=$((RANDOM % 3))
  kind=${kinds[RANDOM % ${#kinds[@]}]}
  happened[$kind]=$((happened[$kind] + 1))
  case $kind in
    osd_killed)
      kill_daemon "osd.$osd"
      pause "$((RANDOM % 6))"
      start_daemon "osd.$osd"
      ;;
    osd_folder_removed)
      kill_daemon "osd.$osd"
      rm -rf "$cluster/osd.$osd"
      wait_for ceph osd destroy "$osd" --yes-i-really-mean-it >/dev/null 2>&1
      make_osd "$osd"
      start_daemon "osd.$osd"
      ;;
    osd_out_and_in)
      ceph osd out "$osd" >/dev/null 2>&1
      pause "$((RANDOM % 4))"
      ceph osd in "$osd" >/dev/null 2>&1
      ;;
    osd_added)
      make_osd 3
      ceph osd crush add osd.3 1 root=default >/dev/null 2>&1
      start_daemon osd.3
      ceph osd out "$osd" >/dev/null 2>&1
      ;;
    monitor_killed)
      monitor=mon.$( ((RANDOM % 2)) && echo a || echo b)
      kill_daemon "$monitor"
      pause "$((RANDOM % 6))"
      start_daemon "$monitor"
      ;;
    metad_killed)
      before=$(served | wc -l)
      active=$(basename "$(served | tail -n 1)" .log)
      kill -KILL "${pids[active]}"
      start_metad
      wait_for has_served $((before + 1))
      ;;
  esac
  status=0
  wait "$running" || status=$?
  if [[ $status -ne 0 || $(cat "$folder/result") != "$right" ]]; then
    wrong=$((wrong + 1))
    echo "round $round, $kind: status $status, '$(cat "$folder/result")' in place of '$right'" >&2
    tail -n 5 "$folder/jacobi.err" >&2
  fi
  if [[ $kind == osd_added ]]; then  # as it was
    ceph osd in "$osd" >/dev/null 2>&1
    ceph osd out 3 >/dev/null 2>&1
    wait_for healthy
    kill_daemon osd.3
    wait_for ceph osd purge 3 --force --yes-i-really-mean-it >/dev/null 2>&1
    rm -rf "$cluster/osd.3" "$cluster/osd.3.pid"
  fi
done
echo "kill_rounds.sh: $rounds rounds ($(for k in "${kinds[@]}"; do echo -n "$k ${happened[$k]}, "; done)seed $seed): $wrong wrong"
((wrong == 0))
