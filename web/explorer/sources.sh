#!/bin/sh
# Prints the digests of everything that the bundle is made of.
set -eu
cd "$(dirname "$0")"
find index.html package.json package-lock.json vite.config.js src tools -type f | LC_ALL=C sort | xargs sha256sum
