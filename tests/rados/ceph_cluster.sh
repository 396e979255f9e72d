#!/bin/bash
# A small cluster of Ceph on loopback, for tests:  ceph_cluster.sh up FOLDER [MONITORS] | down FOLDER
#
# One monitor (a), or two (a and b), a manager and three OSDs with 16 GiB each (in sparse files), that take about 1 GiB of
# memory; two copies of every object.
# The pools are `ooc`, and for bytes alone `ooc-coded`, erasure coded.  The configuration is FOLDER/ceph.conf.  Each
# daemon ends by itself after an hour.  Needs root, and the packages of `scripts/install-deps ceph`.
set -euo pipefail
folder=$2
monitors=(a b)
monitors=("${monitors[@]:0:${3:-1}}")

down() {
  for file in "$folder"/*.pid; do
    [[ -e $file ]] || continue
    kill "$(cat "$file")" 2>/dev/null || true
  done
  for file in "$folder"/*.pid; do
    [[ -e $file ]] || continue
    timeout 20 tail --pid="$(cat "$file")" -f /dev/null 2>/dev/null || kill -KILL "$(cat "$file")" 2>/dev/null || true
  done
  rm -rf "$folder"
}
if [[ $1 == down ]]; then
  down
  exit 0
fi

down
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$folder"
port=$((20000 + RANDOM % 20000))
declare -A addresses
for i in "${!monitors[@]}"; do
  addresses[${monitors[i]}]="[v2:127.0.0.1:$((port + 2 * i))/0,v1:127.0.0.1:$((port + 2 * i + 1))/0]"
done
cat > ceph.conf <<C
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon host = $(IFS=' '; echo "${addresses[*]}")
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = 2
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd heartbeat interval = 1
osd heartbeat grace = 4
mon osd min down reporters = 1
mon warn on insecure global id reclaim allowed = false
bluestore block size = 17179869184
bluestore cache size = 67108864
osd memory target = 402653184
mon allow pool delete = true
run dir = $folder
log file = $folder/\$name.log
admin socket = $folder/\$name.asok
pid file = $folder/\$name.pid
[client]
log file =
admin socket =
[mon]
mon data = $folder/mon.\$id
[mgr.x]
mgr data = $folder/mgr.x
[osd]
osd data = $folder/osd.\$id
C
export CEPH_CONF=$folder/ceph.conf
start() { setsid timeout 3600 "$@" --foreground </dev/null >>start.log 2>&1 & }
monmaptool --create --fsid "$(sed -n 's/fsid = //p' ceph.conf)" monmap >/dev/null
for i in "${monitors[@]}"; do monmaptool --addv "$i" "${addresses[$i]//\/0/}" monmap >/dev/null; done
for i in "${monitors[@]}"; do
  ceph-mon --mkfs -i "$i" --monmap monmap >>start.log 2>&1
  start ceph-mon -i "$i"
done
mkdir mgr.x
start ceph-mgr -i x
making=()
for i in 0 1 2; do
  mkdir "osd.$i"
  uuid=$(cat /proc/sys/kernel/random/uuid)
  ceph osd new "$uuid" "$i" >/dev/null
  (
    ceph-osd -i "$i" --mkfs --osd-uuid "$uuid" >>"osd.$i.out" 2>&1
    ceph osd crush add "osd.$i" 1 root=default >/dev/null 2>&1
  ) &
  making+=($!)
done
wait "${making[@]}"
for i in 0 1 2; do start ceph-osd -i "$i"; done
ceph osd pool create ooc 16 >/dev/null 2>&1
ceph osd erasure-code-profile set coded k=2 m=1 crush-failure-domain=osd >/dev/null
ceph osd pool create ooc-coded 16 16 erasure coded >/dev/null 2>&1
ceph osd pool set ooc-coded allow_ec_overwrites true >/dev/null 2>&1
for ((tries = 0; tries < 600; ++tries)); do
  if ceph pg stat 2>/dev/null | grep -qE '^3[23] pgs: 3[23] active\+clean[;,]' ; then
    echo "$CEPH_CONF"
    exit 0
  fi
  [[ $tries -lt 599 ]] && read -rt 0.1 <> <(:) || true
done
echo "ceph_cluster.sh: the cluster did not become ready: $(ceph -s 2>&1)" >&2
exit 1
