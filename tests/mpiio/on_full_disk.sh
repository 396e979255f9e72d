#!/bin/bash
# on_full_disk.sh RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: what an MPI program is told of a full disk.
set -euo pipefail
if [[ -z ${OOC_TEST_SMALL_DISK:-} ]]; then
  exec "$(dirname "$0")/../mpi/on_small_disk.sh" "$0" "$@"
fi
ranks=$1 mpirun=$2 program=$3 ooc=$4 components=$5
if [[ -z ${OOC_TEST_SMALL_DISK_MOUNTED:-} ]]; then
  echo "SKIPPED: no file system can be mounted here"
  exit 0
fi
cd "$OOC_TEST_SMALL_DISK/small"
store=local:$PWD/n0
"$ooc" --store "$store" init
head -c 2M /dev/zero >fill
export OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
OOC_STORE=$store "$mpirun" "$ranks" "$program" ooc: full_disk >out 2>messages || { cat out messages; exit 1; }
cat out
diff out - <<END
full_disk: some failed 1
full_disk: all failed together 1
full_disk: one that nobody waited for: no space
full_disk: all failed to resize 1
full_disk: done
END
grep -q "MPI-IO: writing ooc:full_disk: node .*/n0: .* are available" messages
"$ooc" --store "$store" verify
