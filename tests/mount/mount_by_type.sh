#!/bin/bash
# mount_by_type.sh OOC HELPER URL FOLDER: `mount -t ooc` and a line of fstab, with HELPER as /sbin/mount.ooc.  To be run
# in a mount namespace of its own, in which alone the helper is there.
set -euo pipefail
ooc=$1 helper=$2 url=$3 folder=$4
export OOC=$ooc  # where mount(8) has its own PATH

mkdir -p "$folder"{,.sbin}
cp "$helper" "$folder.sbin/mount.ooc"
mount -t overlay -o "lowerdir=$folder.sbin:$(realpath /sbin)" overlay "$(realpath /sbin)"

mount -t ooc -o noatime "$url" "$folder"
grep -q " $folder fuse" /proc/self/mounts
echo by hand >"$folder/by_hand"
umount "$folder"
[[ -z $(ls -A "$folder") ]]

echo "$url $folder ooc _netdev,nosuid 0 0" >"$folder.fstab"
mount -T "$folder.fstab" "$folder"
grep " $folder fuse" /proc/self/mounts | grep -q nosuid
[[ $(cat "$folder/by_hand") == "by hand" ]]
echo from fstab >"$folder/from_fstab"
umount "$folder"
[[ -z $(ls -A "$folder") ]]

mount -r -t ooc "$url" "$folder"
if (echo x >"$folder/refused") 2>/dev/null; then exit 1; fi
umount "$folder"
