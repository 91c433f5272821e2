#!/usr/bin/env bash
# Runs every fuzz target of the module for a while: go can only fuzz one at a time.
# usage: tools/fuzz.sh [time for each, such as 10s]
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
count=0
while IFS=: read -r file name; do
  count=$((count + 1))
  echo "fuzz: $name in $(dirname "$file") for $time"
  go test "./$(dirname "$file")" -run '^$' -fuzz "^$name\$" -fuzztime "$time"
done < <(git grep -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/func //')
echo "fuzz: $count targets"
