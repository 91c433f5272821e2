#!/usr/bin/env bash
# make verify: everything that can be said about the tree without running its
# tests. Every step runs; what failed and what could not be checked stands at
# the end.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

failed=()
unchecked=()
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# step NAME COMMAND…: runs a check; exit status 77 means that it could not be made.
step() {
  local name=$1 status=0
  shift
  ("$@") >"$log" 2>&1 || status=$? # in a shell of its own: a step may change folders
  case $status in
    0) echo "verify: $name: ok" ;;
    77)
      echo "verify: $name: not checked"
      unchecked+=("$name: $(tail -n 1 "$log")")
      ;;
    *)
      echo "verify: $name: FAILED"
      sed 's/^/    /' "$log"
      failed+=("$name")
      ;;
  esac
}

# tree prints every file that git knows or would add, with what is in it.
tree() { git ls-files -z --cached --others --exclude-standard --deduplicate | xargs -0 sha256sum 2>/dev/null | sort -k 2; }

generated() {
  local before after
  before=$(tree)
  tools/generate.sh || return 1
  after=$(tree)
  [ "$before" = "$after" ] && return 0
  echo "generated code was not current; commit what \`make generate\` changed:"
  diff <(echo "$before") <(echo "$after") | awk '/^[<>]/ {print "  " $3}' | sort -u
  return 1
}

tools_lint() { cd tools && ../bin/tools/golangci-lint run -c ../.golangci.yml ./... && go vet ./...; }

vulnerabilities() {
  local status=0
  timeout 300 bin/tools/govulncheck ./... || status=$?
  case $status in
    0) return 0 ;;
    3) return 1 ;; # found some
  esac
  # Anything else about the network says nothing about the code.
  if [ $status -eq 124 ] || grep -qiE 'dial |lookup |timeout|connection|proxy|forbidden|certificate|unexpected status|fetching vulnerabilities|HTTP GET' "$log"; then
    echo "its database can't be reached from here"
    return 77
  fi
  return 1
}

modules() {
  go mod verify >/dev/null && go mod tidy -diff && go -C tools mod tidy -diff
}

schema() {
  command -v npm >/dev/null || { echo "npm is not installed"; return 77; }
  tools/schema/check.sh
}

clean_tree() {
  local dirty
  dirty=$(git status --porcelain)
  [ -z "$dirty" ] && return 0
  echo "$dirty"
  [ -n "${CI:-}" ] && return 1
  echo "there are uncommitted changes (with CI set this fails)"
  return 77
}

step "generated code is current" generated
step "it builds and vets" go vet ./...
step "format and lint" bin/tools/golangci-lint run ./...
step "format and lint of the tools" tools_lint
step "module files are tidy" modules
step "rules of the repository" go run -C tools ./check ..
step "shell scripts parse" bash -c 'git ls-files -z "*.sh" .ci/run | xargs -0 -r -n 1 bash -n'
step "govulncheck" vulnerabilities
step "the explorer's bundle is current" web/explorer/check.sh
step "graphql schema" schema
step "clean tree" clean_tree

for u in ${unchecked[@]+"${unchecked[@]}"}; do echo "NOT CHECKED: $u"; done
if [ ${#failed[@]} -gt 0 ]; then
  echo "verify: FAILED: $(IFS=,; echo "${failed[*]}")"
  exit 1
fi
echo "verify: ok"
