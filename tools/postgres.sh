#!/usr/bin/env bash
# Makes sure that PostgreSQL's server binaries are installed: the program runs
# a private cluster from them. Installs Debian's package where it may, with no
# server started on port 5432; otherwise prints what to run and fails.
set -euo pipefail

have_binaries() {
  local dirs=() dir major
  if path=$(command -v initdb); then dirs+=("$(dirname "$(readlink -f "$path")")"); fi
  dirs+=(/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/local/pgsql/bin)
  for dir in "${dirs[@]}"; do
    [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] || continue
    major=$("$dir/postgres" --version | sed -nE 's/.*\(PostgreSQL\) ([0-9]+).*/\1/p')
    [ "${major:-0}" -ge 14 ] && return 0
  done
  return 1
}

install='apt-get install -y postgresql-common && echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf && apt-get install -y postgresql'

have_binaries && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n); else as_root=(false); fi
fi

if [ "${as_root[0]:-}" != false ] && command -v apt-get >/dev/null; then
  echo "PostgreSQL 14 or newer is not installed: installing Debian's package (no server is started on port 5432)"
  # The list of packages may be missing (fresh images) or old: then refresh it and try again.
  if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$install" >/dev/null 2>&1 ||
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "apt-get update -qq && $install"; then
    have_binaries && exit 0
  fi
fi

cat >&2 <<END

PostgreSQL 14 or newer is not installed, and could not be installed from here.
Run this as root; it starts no server:

  $install

END
exit 1
