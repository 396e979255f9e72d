#!/bin/bash
# Runs a program beside a small disk:  on_small_disk.sh PROGRAM [ARGUMENTS...]
#
# OOC_TEST_SMALL_DISK is a folder in which `small` is a file system of 4 MiB, in a mount namespace of
# the program.  Where none may be mounted it is a folder like any other, and
# OOC_TEST_SMALL_DISK_MOUNTED is not set.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/small"
export OOC_TEST_SMALL_DISK=$folder
own_space=(unshare --mount)
((EUID == 0)) || own_space+=(--map-root-user)
# shellcheck disable=SC2016
beside_small=("${own_space[@]}" bash -c
  'mount -t tmpfs -o size=4m tmpfs "$OOC_TEST_SMALL_DISK/small" && exec "$@"' _)
if "${beside_small[@]}" true 2>/dev/null; then
  OOC_TEST_SMALL_DISK_MOUNTED=1 "${beside_small[@]}" "$@"
else
  echo "no file system could be mounted: files are limited instead"
  "$@"
fi
