#!/bin/sh
# Builds the explorer's bundle into dist, from the versions in the lock file.
# The result is committed, so only a change of the explorer needs Node.
set -eu
cd "$(dirname "$0")"
command -v npm >/dev/null || {
	echo "npm is missing; on Debian: apt-get install nodejs npm (Node 20.19 or later)" >&2
	exit 1
}
npm ci --ignore-scripts --no-audit --no-fund
npx --no-install vite build --logLevel warn
node tools/pack.mjs build dist
./sources.sh >dist/SOURCES
rm -rf build
du -sh dist
