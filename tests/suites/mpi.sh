# Suites for MPI-IO.  Each is called with a folder of its own, and with what the names of its files in that folder begin with: the folder, or
# ooc:FOLDER for the components.

mpi_suites=(romio ior-mpiio btio npb pnetcdf hdf5 h5py-mpi)

ranks() { timeout $((300 + 300 * size)) "$tree/scripts/ooc-mpirun" "$@"; }

# each_of NAME... : calls one_NAME for all, of which some may fail on every file system; the figure says which
each_of() {
  local what=$1 name failed=()
  shift
  for name in "$@"; do
    "$what" "$name" > "$scratch/one.log" 2>&1 && continue
    failed+=("${name##*/}")
    echo "failed: $name"
    tail -5 "$scratch/one.log"
  done
  echo "$(($# - ${#failed[@]})) of $#${failed[*]:+, not ${failed[*]}}" > "$scratch/figure"
  ((${#failed[@]} == 0))
}

# ROMIO's own tests, built from mpich/src/mpi/romio/test
run_romio() {
  local folder program programs=() files=$2
  have mpich src/mpi/romio/test/simple || return
  folder=${found%/*}
  for program in "$folder"/*.c "$folder"/*.c.in; do
    program=${program%.in}
    program=${program%.c}
    case ${program##*/} in perf | coll_perf | large_file | large_array | syshints) continue ;; esac   # syshints: of hints of ROMIO's own
    [[ ! -x $program ]] || programs+=("$program")
  done
  one_romio() {
    local n=4 arguments=(-fname "$files/${1##*/}")
    case ${1##*/} in
      noncontig | noncontig_coll | i_noncontig) n=2 ;;
      big_extents | types_with_zeros) n=2 arguments=("$files/${1##*/}") ;;
    esac
    timeout 120 "$tree/scripts/ooc-mpirun" $n "$1" "${arguments[@]}" > "$scratch/romio.log" 2>&1
    local result=$?
    cat "$scratch/romio.log"
    ((result == 0)) && grep -q "No Errors" "$scratch/romio.log"
  }
  each_of one_romio "${programs[@]}"
}

# Interleaved records of each size: rank r has record r of every 4, and each collective call transfers one of each rank.  Everything is
# compared.  (IOR can put all records of a rank into one call, but cannot compare then: `oocbench collective` does.)
run_ior_mpiio() {
  have ior src/ior || return
  local record segments rate=()
  for record in 1024 16384 131072 1048576; do
    segments=$((4194304 / record))
    segments=$(((segments < 256 ? segments : 256) * size))
    ranks 4 "$found" -a MPIIO -c -w -r -W -R -t $record -b $record -s $segments -o "$2/ior" > "$scratch/ior.log" 2>&1 &&
      ! grep -q 'incorrect\|ERROR' "$scratch/ior.log" || { cat "$scratch/ior.log"; return 1; }
    rate+=("$((record / 1024)) KiB $(awk '/^write / {printf "%.0f/", $2} /^read / {printf "%.0f", $2; exit}' "$scratch/ior.log")")
  done
  (IFS=,; echo "MiB/s ${rate[*]}") > "$scratch/figure"
}

# Wei-keng Liao's BTIO: 64 x 64 x 64 points as class A (of which 40 dumps are OOC_SUITES_SIZE=10), written and read by collective
# calls and by PnetCDF.  It checks nothing, but its dumps are copies of the same random numbers, none of which is 0.
run_btio() {
  have BTIO btio || return
  local n method file=([0]=btio.mpi [3]=btio.nc) rate=() way
  for n in 4 9 16; do
    for method in 0 3; do
      for way in w r; do
        printf '%s\n%s\n%s\n64 64 64\n%s\n' $way $method $((4 * size)) "$2" > "$scratch/inputbt.data"
        ranks $n "$found" "$scratch/inputbt.data" > "$scratch/btio.log" 2>&1 && grep -q 'I/O bandwidth' "$scratch/btio.log" ||
          { cat "$scratch/btio.log"; return 1; }
        rate+=("$(awk -v n=$n -v m=${file[method]#*.} -v w=$way '/I\/O bandwidth/ {printf "%s%s%s %.0f", m, n, w, $4}' "$scratch/btio.log")")
      done
      /usr/bin/python3 - "$1/${file[method]}" $((4 * size)) <<'CHECK' || return
import sys, numpy as np
name, dumps = sys.argv[1], int(sys.argv[2])
a = np.fromfile(name, "f8" if name.endswith("mpi") else ">f8")[-dumps * 64**3 * 5:].reshape(dumps, -1)
assert (a == a[0]).all() and (a[0] > 0).all() and (a[0] < 1).all(), "the file's dumps differ, or have holes"
CHECK
      rm "$1/${file[method]}"
    done
  done
  (IFS=,; echo "MiB/s ${rate[*]}") > "$scratch/figure"
}

# BT of the NAS Parallel Benchmarks, class A, with its results written by collective calls (full) and verified by itself.  The name of
# its file is compiled in: on the mount it is one in the current folder; for the components the programs of bin-ooc have
# filenm = 'ooc:btio.full.out'.
run_npb() {
  local n seconds=() bin=bin
  [[ $2 != ooc:* ]] || bin=bin-ooc
  for n in 4 9 16; do
    have NPB $bin/bt.A.$n.mpi_io_full || return
    timeout 900 "$tree/scripts/ooc-mpirun" $n "$found" > "$scratch/npb.log" 2>&1
    grep -Eq 'Verification +(=|being) +SUCCESSFUL|Verification Successful' "$scratch/npb.log" || { cat "$scratch/npb.log"; return 1; }
    seconds+=("$n: $(awk -F: '/I\/O timing in seconds/ {printf "%.1f s", $2}' "$scratch/npb.log")")
  done
  (IFS=,; echo "I/O ${seconds[*]}") > "$scratch/figure"
}

# PnetCDF's programs for several ranks, but for those that read files which are there; its validator looks at each file, of the store
# through the mount.
run_pnetcdf() {
  local folder program programs=() files=$2 place=$1 validator
  have pnetcdf src/utils/ncvalidator/ncvalidator || return
  validator=$found
  have pnetcdf test/testcases/ncmpi_vars_null_stride || return
  for folder in C cdf_format header nonblocking testcases; do
    for program in "$sources/pnetcdf/test/$folder"/*; do
      case ${program##*/} in *.* | tst_version | pres_temp_4D_rd | test_inq_format | tst_corrupt | tst_open_cdf5) continue ;; esac
      [[ ! -f $program || ! -x $program ]] || programs+=("$program")
    done
  done
  one_pnetcdf() {
    local name=${1##*/} result
    ranks 4 "$1" "$files/$name.nc" > "$scratch/pnetcdf.log" 2>&1
    result=$?
    cat "$scratch/pnetcdf.log"
    ((result == 0)) && ! grep -qi 'fail' "$scratch/pnetcdf.log" && { [[ ! -s $place/$name.nc ]] || "$validator" -q "$place/$name.nc"; }
  }
  each_of one_pnetcdf "${programs[@]}"
}

# HDF5's parallel tests; without t_cache (of its own cache, for many minutes), t_mpi, t_bigio, t_pflush1 and t_pflush2.  By the components also
# without those that open the same name with the serial driver: four parts of testphdf5, and t_filters_parallel.
run_hdf5() {
  local files=$2 programs=(testphdf5 t_pread t_pshutdown t_prestart t_shapesame t_init_term) parts=()
  have hdf5 testpar/testphdf5 || return
  if [[ $2 == ooc:* ]]; then parts=(-x calloc -x fltread -x cmpdsetr -x atomicity); else programs+=(t_filters_parallel); fi
  one_hdf5() {
    local arguments=()
    [[ $1 != */testphdf5 ]] || arguments=("${parts[@]}")
    HDF5_PARAPREFIX=$files ranks 4 "$1" "${arguments[@]}"
  }
  each_of one_hdf5 "${programs[@]/#/${found%/*}/}"
}

# The tests of h5py with the driver mpio make their files in TMPDIR, so they cannot be given names for the components; our own test can.
run_h5py_mpi() {
  /usr/bin/python3 -c 'import h5py._debian_h5py_mpi, mpi4py, pytest_mpi' ||
    { echo "no h5py with MPI (Debian: python3-h5py-mpi, python3-mpi4py, python3-pytest-mpi)"; return 77; }
  if [[ $2 == ooc:* ]]; then
    ranks 4 /usr/bin/python3 "$tree/tests/mpiio/parallel_hdf5.py" write "$2/a.h5" && /usr/bin/python3 "$tree/tests/mpiio/parallel_hdf5.py" check "$1/a.h5"
    return
  fi
  TMPDIR=$1 ranks 4 /usr/bin/python3 -m pytest -q --color=no --with-mpi -p no:cacheprovider \
    --pyargs h5py._debian_h5py_mpi.tests.test_file -k MPI
}
