# Where the suites of others are: folders below $sources, checkouts that their own instructions have built.  They are never copied into
# this tree.

declare -A home=(
  [xfstests]=https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git
  [pjdfstest]=https://github.com/pjd/pjdfstest.git
  [ior]=https://github.com/hpc/ior.git
  [mpich]=https://github.com/pmodels/mpich.git
  [BTIO]=https://github.com/wkliao/BTIO.git
  [pnetcdf]=https://github.com/Parallel-NetCDF/PnetCDF.git
  [hdf5]=https://github.com/HDFGroup/hdf5.git
  [array-api-tests]=https://github.com/data-apis/array-api-tests.git
)

if [[ -z $sources ]]; then
  sources=$(dirname "$tree")/suites
  clone=yes
fi

# have SUITE FILE: puts the file's path into $found.  Status 77, and a line that says why, where it is not there.
have() {
  found=$sources/$1/$2
  [[ -e $found ]] && return
  if [[ ! -d $sources/$1 ]]; then
    [[ ${clone:-} == yes && -n ${home[$1]:-} ]] || { echo "no $sources/$1"; return 77; }
    mkdir -p "$sources" && GIT_TERMINAL_PROMPT=0 timeout 600 git clone -q --depth 1 --recurse-submodules --shallow-submodules "${home[$1]}" "$sources/$1" ||
      { echo "${home[$1]} cannot be cloned"; return 77; }
  fi
  [[ -e $found ]] || { echo "no $found: build it as the suite's own README says"; return 77; }
}

# have_command PROGRAM PACKAGE
have_command() { command -v "$1" > /dev/null || { echo "no $1 (Debian: $2)"; return 77; }; }
