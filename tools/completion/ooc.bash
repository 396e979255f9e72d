# bash completion for ooc: commands, options, and paths in the store.

_ooc() {
  local cur prev words cword
  _init_completion -n =: 2>/dev/null || {
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    words=("${COMP_WORDS[@]}")
    cword=$COMP_CWORD
  }

  local commands="init ls du cat stat mkdir mv rm cp snapshot truncate import export picture attr chmod chown info verify replace-node add-node drain restripe pack unpack up down ping df top start stop keygen revoke mount umount"
  local command="" i store=()
  for ((i = 1; i < cword; i++)); do
    case ${words[i]} in
      --store) store=(--store "${words[i+1]}"); ((i++)) ;;
      -*) ;;
      *) [[ -z $command ]] && command=${words[i]} ;;
    esac
  done

  case $prev in
    --store|--from|--to) COMPREPLY=($(compgen -W "local: ooc://" -- "$cur")); compopt -o nospace; return ;;
    --format) COMPREPLY=($(compgen -W "npy raw hdf5" -- "$cur")); return ;;
    --type) COMPREPLY=($(compgen -W "b1 f2 f4 f8 f16 c8 c16 c32 i1 i2 i4 i8 u1 u2 u4 u8 struct" -- "$cur")); return ;;
    --dir) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames; return ;;
    --key|--hosts|--ooc) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames; return ;;
    --encrypt) COMPREPLY=($(compgen -W "on off" -- "$cur")); return ;;
    --user) COMPREPLY=($(compgen -u -- "$cur")); return ;;
    --launcher) COMPREPLY=($(compgen -W "ssh srun" -- "$cur")); return ;;
    --shape|--size|--tile|--dataset|--box|--offset|--at|--max-extents|--memory|--chunk|--deflate|--slice|--range|--sf|--nn|--sn|--buffer|--nodes|--port|--addresses|--wait|--interval|--sort|--codec|--groups|--salvage|--forget-node) return ;;
  esac

  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W "$commands --store --help --version" -- "$cur"))
    return
  fi

  if [[ $cur == -* ]]; then
    local options="--store --help"
    case $command in
      ls) options+=" --long --recursive --directory --json" ;;
      du) options+=" --summarize --bytes --json" ;;
      cat) options+=" --buffer" ;;
      picture) options+=" --slice --size --range --force" ;;
      truncate) options+=" --size --no-create --sf --nn --sn" ;;
      stat|info) options+=" --json" ;;
      rm|chmod|chown) options+=" --recursive" ;;
      cp) options+=" --from --to --recursive --salvage --since --no-clobber --skip-existing --force --sf --nn --sn --commits --flatten --buffer --quiet" ;;
      mv) options+=" --from --to --no-clobber --skip-existing --force --sf --nn --sn --commits --flatten --buffer --quiet" ;;
      mkdir) options+=" --parents" ;;
      snapshot) options+=" --copy" ;;
      import) options+=" --format --dataset --box --missing-as-fill --memory --type --shape --offset --transpose --append --at --force --tile --max-extents --sf --nn --sn --sparse --commits --buffer --quiet" ;;
      export) options+=" --format --dataset --box --chunk --deflate --salvage --force --buffer --quiet" ;;
      up) options+=" --dir --nodes --port --key --encrypt --addresses --direct-io --iod-memory --wait --forget-node --hosts --launcher --ooc" ;;
      down) options+=" --dir --key --wait --hosts --launcher --ooc" ;;
      keygen) options+=" --user --groups --key" ;;
      revoke) options+=" --key" ;;
      start|stop) options+=" --dir --wait" ;;
      ping|df) options+=" --key --json" ;;
      pack) options+=" --recursive --codec --no-shuffle --chunk --quiet" ;;
      unpack) options+=" --recursive --quiet" ;;
      top) options+=" --once --interval --sort --key --json" ;;
      replace-node) options+=" --quiet" ;;
      drain) options+=" --undo --buffer --quiet" ;;
      restripe) options+=" --recursive --sf --nn --sn --buffer --quiet" ;;
      verify) options+=" --json --remove-orphans --quiet" ;;
      mount) options+=" --options --foreground" ;;
      umount) options+=" --lazy" ;;
    esac
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
    return
  fi

  # Which positional argument is this?
  local position=0 seen=0
  for ((i = 1; i < cword; i++)); do
    case ${words[i]} in
      --store|-o|--options|--from|--to|--format|--type|--shape|--size|--tile|--sf|--nn|--sn|--buffer) ((i++)) ;;
      --dataset|--box|--chunk|--deflate|--slice|--range|--salvage) ((i++)) ;;
      --dir|--key|--user|--groups|--encrypt|--wait|--interval|--sort|--codec|--nodes|--port|--addresses|--hosts|--launcher|--ooc) ((i++)) ;;
      -*) ;;
      *) ((seen++)) && ((position++)) ;;
    esac
  done
  case $command:$position in
    import:0|export:1|picture:1) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames; return ;;
    mount:1|umount:0|add-node:*) COMPREPLY=($(compgen -d -- "$cur")); compopt -o filenames; return ;;
    attr:0) COMPREPLY=($(compgen -W "get set rm" -- "$cur")); return ;;
    start:0|stop:0) COMPREPLY=($(compgen -W "metad iod-" -- "$cur")); return ;;
    keygen:0) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames; return ;;
    ping:0|df:0|top:0) COMPREPLY=($(compgen -W "ooc://" -- "$cur")); compopt -o nospace; return ;;
    init:*|info:*|up:*|down:*) return ;;
  esac
  # The paths of cp and mv may be those of other stores, or plain files.
  local other=""
  case $command:$position:$cur in
    cp:*:./*|cp:*:../*|mv:*:./*|mv:*:../*) COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames; return ;;
    cp:0:*|mv:0:*) other=--from ;;
    cp:*|mv:*) other=--to ;;
  esac
  if [[ -n $other ]]; then
    for ((i = 1; i < cword; i++)); do
      [[ ${words[i]} == "$other" ]] && store=(--store "${words[i+1]}")
    done
  fi
  local folder=""
  [[ $cur == */* ]] && folder=${cur%/*}
  local IFS=$'\n'
  COMPREPLY=($(compgen -W "$("${words[0]}" ls "${store[@]}" "$folder" 2>/dev/null)" -- "$cur"))
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}

complete -F _ooc ooc
