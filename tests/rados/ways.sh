#!/bin/bash
# A store in RADOS by other ways than C++:  ways.sh OOC METAD [MPIRUN MPI_IO_PROGRAM COMPONENTS]
#
# A mount, where there is /dev/fuse; the Python package, where it is in OOC_PYTHONPATH; MPI-IO of three ranks through a
# metadata server, where the program of tests/mpiio is given: it says the same as on a plain folder.
set -euo pipefail
ooc=$1 metad=$2
shift 2
url=rados:ooc/ways-$$
folder=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill $server 2>/dev/null || true; umount -l "$folder/mount" 2>/dev/null || true; rm -rf "$folder"' EXIT
head -c 9000000 /dev/urandom >"$folder/bytes"
"$ooc" --store "$url" init >/dev/null

if [[ -e /dev/fuse ]] && "$ooc" mount --help >/dev/null 2>&1; then
  mkdir "$folder/mount"
  "$ooc" mount "$url" "$folder/mount"
  cp "$folder/bytes" "$folder/mount/a"
  truncate -s 5000000 "$folder/mount/a"
  truncate -s 9000000 "$folder/mount/a"
  cmp -n 5000000 "$folder/bytes" "$folder/mount/a"
  [[ $(tail -c 4000000 "$folder/mount/a" | tr -d '\0' | wc -c) -eq 0 ]]
  cp "$folder/bytes" "$folder/mount/a"
  "$ooc" umount "$folder/mount"
  "$ooc" --store "$url" cat a | cmp - "$folder/bytes"
  echo "mount: as it should be"
fi

if compgen -G "${OOC_PYTHONPATH:-/none}/oocarray/_core*.so" >/dev/null; then
  PYTHONPATH=$OOC_PYTHONPATH /usr/bin/python3 -B - "$url" <<'P'
import sys
import numpy as np
import oocarray as ooc

ooc.Runtime(memory="16MiB")
with ooc.open_store(sys.argv[1]).create("m/x", (2000, 2000)) as a:
    a[:] = np.arange(4e6).reshape(2000, 2000)
with ooc.open_store(sys.argv[1]).open("m/x") as a:
    assert np.array_equal(a[1234], np.arange(2000) + 1234 * 2000.0) and np.sum(a) == 7999998000000.0
print("Python: as it should be")
P
fi

if (($# == 3)); then
  mkfifo "$folder/log"
  "$metad" --folder "$folder/metad" --database "$url" --listen 127.0.0.1:0 >"$folder/log" 2>&1 &
  server=$!
  exec 3<"$folder/log"
  while read -r line <&3 && [[ $line != *"listening on"* ]]; do :; done
  cat <&3 >/dev/null &
  mkdir "$folder/plain"
  "$1" 3 "$2" "$folder/plain/" >"$folder/plain.out"
  OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$3 "$1" 3 "$2" "ooc:$url/" >"$folder/store.out"
  diff "$folder/plain.out" "$folder/store.out"
  for file in "$folder"/plain/*; do
    "$ooc" --store "$url" export -q -f --format raw "${file##*/}" "$folder/exported"
    cmp "$file" "$folder/exported"
  done
  kill "$server"
  wait "$server"
  server=
  echo "MPI-IO: as it should be"
fi
"$ooc" --store "$url" verify --quiet
