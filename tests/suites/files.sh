# Suites for a file system.  Each is called with a folder of its own.

file_suites=(fsx git sqlite fio pjdfstest mdtest ior h5py array-api)

run_fsx() {
  have xfstests ltp/fsx || return
  "$found" -q -N $((3000 * size)) -S 7 "$1/f" && "$found" -q -N $((2000 * size)) -S 11 -l 3000000 -o 500000 "$1/g"
}

run_git() {
  have_command git git || return
  local from=$tree
  [[ ! -d $sources/git ]] || from=$sources/git
  git clone -q --no-hardlinks "file://$from" "$1/clone" && git -C "$1/clone" fsck --full &&
    git -C "$1/clone" gc -q && git -C "$1/clone" fsck --full &&
    [[ -z $(git -C "$1/clone" status --porcelain) ]] || return
  echo "$(git -C "$1/clone" ls-files | wc -l) files" > "$scratch/figure"
}

run_sqlite() {
  have_command sqlite3 sqlite3 || return
  local i writer
  sqlite3 "$1/db" 'CREATE TABLE t (x INTEGER PRIMARY KEY, y BLOB);' || return 1
  for ((i = 0; i < 5 * size; ++i)); do
    # Killed in the middle of writing
    yes 'INSERT INTO t (y) VALUES (randomblob(3000));' | head -100000 | sqlite3 "$1/db" &
    writer=$!
    sleep 0.3
    kill -9 $writer 2> /dev/null
    wait $writer 2> /dev/null
    [[ $(sqlite3 "$1/db" 'PRAGMA integrity_check;') == ok ]] || return 1
  done
  echo "$((5 * size)) kills, $(sqlite3 "$1/db" 'SELECT count(*) FROM t;') rows" > "$scratch/figure"
  sqlite3 "$1/db" 'PRAGMA journal_mode = DELETE; VACUUM; PRAGMA integrity_check;' | tail -1 | grep -qx ok
}

run_fio() {
  have_command fio fio || return
  local kind
  for kind in write randwrite; do
    fio --name=verify --directory="$1" --rw=$kind --bs=64k --size=$((64 * size))m --verify=crc32c \
      --do_verify=1 --verify_fatal=1 --end_fsync=1 > "$1/fio.log" || { cat "$1/fio.log"; return 1; }
    rm "$1"/verify*
  done
}

run_pjdfstest() {
  have pjdfstest pjdfstest || return
  ((EUID == 0)) || { echo "needs root"; return 77; }
  local tests=${found%/*}/tests result
  chmod 755 "$1"
  prove -r "$tests" > "$scratch/prove.log"
  result=$?
  grep -oE 'Tests=[0-9]+' "$scratch/prove.log" | sed 's/Tests=\(.*\)/\1 checks/' > "$scratch/figure"
  grep -A1000 '^Test Summary' "$scratch/prove.log"
  return $result
}

run_mdtest() {
  have ior src/mdtest || return
  "$tree/scripts/ooc-mpirun" 2 "$found" -n $((200 * size)) -w 3901 -e 3901 -d "$1/mdtest" > "$scratch/mdtest.log" ||
    { cat "$scratch/mdtest.log"; return 1; }
  awk '/^ +File (creation|stat)/ {printf "%s%s %.0f/s", n++ ? ", " : "", $2, $5}' "$scratch/mdtest.log" > "$scratch/figure"
}

run_ior() {
  have ior src/ior || return
  "$tree/scripts/ooc-mpirun" 4 "$found" -a POSIX -w -r -W -R -t 256k -b $((16 * size))m -o "$1/ior"
}

# Its tests make their files in TMPDIR.
run_h5py() {
  /usr/bin/python3 -c 'import h5py, pytest' || { echo "no h5py (Debian: python3-h5py, python3-pytest)"; return 77; }
  TMPDIR=$1 /usr/bin/python3 -m pytest -q --color=no -p no:cacheprovider --pyargs h5py._debian_h5py_serial.tests > "$scratch/h5py.log"
  local result=$?
  tail -40 "$scratch/h5py.log"
  tail -1 "$scratch/h5py.log" | grep -oE '[0-9]+ (passed|failed|skipped)' | paste -sd, > "$scratch/figure"
  return $result
}

# In memory as far as results are small, and beside that with every result in the store.  OOC_SUITES_PYTHON has the packages.
run_array_api() {
  have array-api-tests array_api_tests || return
  local python=${OOC_SUITES_PYTHON:-python3} small="16 << 20" url=local:$1/scratch
  "$python" -c 'import hypothesis, ndindex, numpy, pytest_jsonreport' ||
    { echo "no hypothesis, ndindex, NumPy or pytest-json-report for $python: set OOC_SUITES_PYTHON"; return 77; }
  [[ $1 != "$mount"/* ]] || small=0 url=$OOC_STORE
  export ARRAY_API_TESTS_MODULE="exec('import oocarray; oocarray.Runtime(memory=\"64MiB\", small=$small); from oocarray import numpy as xp')"
  cd "$sources/array-api-tests" && PYTHONPATH=$build/python OOC_SCRATCH=$url "$python" -B -m pytest -q --color=no -p no:cacheprovider \
    -W ignore --disable-deadline --max-examples $((20 * size)) --xfails-file "$tree/tests/suites/array_api_xfails.txt" array_api_tests \
    > "$scratch/array-api.log"
  local result=$?
  unset ARRAY_API_TESTS_MODULE
  tail -40 "$scratch/array-api.log"
  tail -1 "$scratch/array-api.log" | grep -oE '[0-9]+ (passed|failed|skipped|xfailed)' | paste -sd, > "$scratch/figure"
  return $result
}
