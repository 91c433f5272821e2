#!/usr/bin/env bash
# Lints the GraphQL schema as one whole.
set -euo pipefail
cd "$(dirname "$0")"
# npm ci only when the lock has changed since: it takes a minute.
if ! cmp -s package-lock.json node_modules/.installed; then
  npm ci --no-audit --no-fund --loglevel=error
  cp package-lock.json node_modules/.installed
fi
# From the top: eslint ignores what lies outside of its working directory.
cd ../..
exec tools/schema/node_modules/.bin/eslint --config tools/schema/eslint.config.mjs --max-warnings 0 \
  schema.graphqls 'graph/schema/*.graphqls'
