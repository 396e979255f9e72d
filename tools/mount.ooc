#!/bin/sh
# For mount(8) and fstab(5), as /sbin/mount.ooc:
#
#   ooc://head:7420/  /mnt/store  ooc  _netdev,allow_other,key=/etc/oocarray/key  0  0
#
# mount(8) calls it with URL FOLDER [-sfnvrw] [-N NAMESPACE] [-o OPTIONS].
set -eu
url=$1 folder=$2
shift 2
set_options=
while [ $# -gt 0 ]; do
  case $1 in
    -o) set_options="$set_options,$2"; shift ;;
    -f) exit 0 ;;  # mount --fake
    -r) set_options="$set_options,ro" ;;
    -N | -t) shift ;;
  esac
  shift
done
exec "${OOC:-ooc}" mount "$url" "$folder" -o "${set_options#,}"
