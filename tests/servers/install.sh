#!/usr/bin/env bash
# Installs what tests need and pip does not bring: Debian's MariaDB, Chromium, a font with the letters of many languages,
# and Java and Maven, which fetch and run Elasticsearch. Does nothing where all are there.
# Without root or apt-get it says what is missing; the tests then skip on a laptop and fail under CI=true.
set -euo pipefail
missing=()
command -v mariadbd >/dev/null || missing+=(mariadb-server)
command -v chromium >/dev/null || missing+=(chromium)
command -v java >/dev/null || missing+=(openjdk-17-jre-headless)
command -v mvn >/dev/null || missing+=(maven)
[ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing+=(fonts-dejavu-core)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq "${missing[@]}" >/dev/null
else
  echo "not installed, and this is no Debian with root: ${missing[*]}" >&2
fi
