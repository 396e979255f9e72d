#!/bin/bash
# on_two_hosts.sh RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: shared pointers of ranks that Open MPI believes to be on two
# hosts, which are two names of this machine, reached through the loopback device.
set -euo pipefail
ranks=$1 mpirun=$2 program=$3 ooc=$4 components=$5 scratch=$6

if ! unshare --map-root-user --uts true 2>/dev/null; then
  echo "SKIPPED: no name of its own can be given to a process here"
  exit 0
fi
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"
cat >as_host <<'END'
#!/bin/sh
# as_host HOST COMMAND...: as ssh is called
host=$1
shift
exec unshare --map-root-user --uts sh -c "hostname '$host' && $*"
END
chmod +x as_host
trap '"$ooc" down --dir servers >/dev/null' EXIT
store=$("$ooc" up --port 0 --nodes 2 --dir servers | tail -1)
export OOC_STORE=$store OMPI_MCA_mca_base_component_path=SYS_DEFAULT:$components
OOC_MPIRUN_OPTIONS="--host left:$((ranks / 2)),right:$((ranks - ranks / 2)) -x OOC_STORE
  --mca plm rsh --mca plm_rsh_agent $PWD/as_host --mca plm_rsh_no_tree_spawn 1
  --mca oob_tcp_if_include lo --mca btl self,vader,tcp --mca btl_tcp_if_include lo"
# `read` in ooc-mpirun takes one line
export OOC_MPIRUN_OPTIONS=${OOC_MPIRUN_OPTIONS//$'\n'/ }
"$mpirun" "$ranks" sh -c 'hostname' | sort -u >hosts
diff hosts - <<END
left
right
END
"$mpirun" "$ranks" "$program" ooc: shared_pointers shared_turns shared_order shared_refusals strided_views >out
diff out - <<END
strided_views: done
shared_pointers: done
shared_turns: done
shared_order: done
shared_refusals: done
END
# The files that held the pointers are gone.
[[ $("$ooc" ls | wc -l) == 5 && -z $("$ooc" ls '.shared-pointer-*' 2>/dev/null) ]]
"$ooc" verify
