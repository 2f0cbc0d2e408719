#!/usr/bin/env bash
# Installs the servers that tests start and pip does not bring: Debian's MariaDB. Does nothing where it is there.
# Without root or apt-get it says what is missing; the tests then skip on a laptop and fail under CI=true.
set -euo pipefail
missing=()
command -v mariadbd >/dev/null || missing+=(mariadb-server)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq "${missing[@]}" >/dev/null
else
  echo "not installed, and this is no Debian with root: ${missing[*]}" >&2
fi
