#!/bin/sh
# Tells whether the committed bundle was built from the sources beside it.
# Needs no Node.
set -eu
cd "$(dirname "$0")"
if ./sources.sh | cmp -s - dist/SOURCES; then
	echo "web/explorer/dist is current"
else
	echo "web/explorer/dist is not current; run web/explorer/build.sh and commit the result" >&2
	exit 1
fi
