#!/usr/bin/env bash
# Makes generated code anew: what `go generate` knows, and one GraphQL server
# for each gqlgen.yml, with the generator that tools/go.mod pins.
set -euo pipefail
cd "$(dirname "$0")/.."
gqlgen=$PWD/bin/tools/gqlgen
[ -x "$gqlgen" ] || { echo "run make generate, which builds $gqlgen first" >&2; exit 1; }

go generate ./...
git ls-files -z --cached --others --exclude-standard --deduplicate -- gqlgen.yml '*/gqlgen.yml' |
  while IFS= read -r -d '' config; do
    [ -e "$config" ] || continue # moved and not committed yet
    echo "generate: $config"
    (cd "$(dirname "$config")" && "$gqlgen" generate --config gqlgen.yml)
  done
