#!/bin/sh
# Make a bare Debian in FOLDER: Python and pip as Debian ships them (no ensurepip, no venv, and a
# pip that refuses to install system-wide). For tests/test_start_chroot.py, and to look by hand:
#
#     sudo tools/make_chroot.sh FOLDER [SUITE]
#     sudo chroot FOLDER
#
# Needs root and debootstrap (a package of Debian and Ubuntu). MIRROR names another mirror.
set -eu

if [ $# -lt 1 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 2
fi
folder=$1
suite=${2:-bookworm}

debootstrap --variant=minbase --include=python3,python3-pip,ca-certificates \
  "$suite" "$folder" "${MIRROR:-http://deb.debian.org/debian}"

# The network as this machine sees it: names, and the certificates that it trusts.
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
  [ ! -f "$file" ] || cp -L "$file" "$folder$file"
done
