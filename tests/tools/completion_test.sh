#!/bin/bash
# The bash completion offers commands, options and paths.  Arguments: the completion file, the ooc command.
source "$1" || exit 1
ooc=$2
folder=$(mktemp -d) || exit 1
trap 'rm -r "$folder"' EXIT
export OOC_STORE="local:$folder/s"
"$ooc" init > /dev/null && "$ooc" mkdir plate plane/deep -p || exit 1

failures=0
# complete_words WORD...: COMPREPLY has what the last WORD may become.
complete_words() {
  COMP_WORDS=("$ooc" "$@")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMP_LINE="${COMP_WORDS[*]}"
  COMP_POINT=${#COMP_LINE}
  COMPREPLY=()
  compopt() { :; }
  _init_completion() { return 1; }
  _ooc
}
# expect WORD... = REPLY...: completing the last WORD gives these replies.
expect() {
  local words=() replies=()
  while [[ $1 != = ]]; do words+=("$1"); shift; done
  shift
  replies=("$@")
  complete_words "${words[@]}"
  if [[ "${COMPREPLY[*]}" != "${replies[*]}" ]]; then
    echo "completing '${words[*]}': got '${COMPREPLY[*]}', expected '${replies[*]}'" >&2
    failures=$((failures + 1))
  fi
}

expect ve = verify
expect m = mkdir mv mount
expect umount --l = --lazy
expect do = down
expect up --ho = --hosts
expect up --launcher s = ssh srun
expect stop --dir /tmp me = metad
expect ls pla = plane/ plate/
expect ls plane/ = plane/deep/
expect --store "$OOC_STORE" stat plat = plate/
expect cp --from local:/nowhere --to "$OOC_STORE" a plat = plate/
expect cp --sk = --skip-existing
expect import --form = --format
expect import --format n = npy
expect attr g = get
expect attr get plat = plate/

# Every command that the help names, and every option that a command's help names.
for command in $("$ooc" help | sed -n '/^Commands:/,/^$/p' | awk '/^  [a-z]/ { print $1 }'); do
  expect "$command" = "$command"
  for option in $("$ooc" "$command" --help | grep -oE '^ +(-[a-zA-Z] \[ )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    complete_words "$command" "$option"
    if [[ " ${COMPREPLY[*]} " != *" $option "* ]]; then
      echo "'$command' is not offered '$option'" >&2
      failures=$((failures + 1))
    fi
  done
done
exit $((failures > 0))
