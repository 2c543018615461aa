#!/usr/bin/env bash
# Prints the packages of one group, a line each. Every package is in exactly one of them:
#   in-process  most: no child process but their own test program
#   processes   those that start a management cluster
#   kills       those that kill omni-apiserver again and again
#   elsewhere   those that have a target of their own, with programs that are built for it
# And the packages of in-process that the race detector has something to look at in:
#   concurrent  those in which one thing may run beside another: the package, its tests, or what it uses of ours starts it
# And those of `make test-unit`:
#   unit        those of the product whose tests start no process and no etcd
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

elsewhere='/test/(e2eflux|e2ecertmanager)(/|$)'
kills='/test/durability(/|$)'
processes='/(test/(env|deploy|e2e)|pkg/helm/live)(/|$)'

all=$(go list ./...)

# concurrent prints the packages in which something starts a goroutine or a process, or serves. foreigntest's own goroutine watches how
# much memory a test takes, and the generated clients are run by those who use them.
concurrent() {
  local starts='^\s*go (func\b|[A-Za-z_.]+\()|\.(Go|AfterFunc|Parallel|RunParallel)\(|\b(httptest|synctest|exec)\.|\bnet\.Listen|grpc\.NewServer|wait\.(Until|Poll)'
  local folders module
  folders=$(git grep --untracked -lE "$starts" -- '*.go' ':!pkg/generated' ':!pkg/foreign/foreigntest' | xargs -n 1 dirname | sort -u)
  module=$(go list -m)

  # A test program's dependencies are those of the package and of its tests.
  # shellcheck disable=SC2086 # a list of packages
  go list -test -f '{{if .ForTest}}{{else}}{{.ImportPath}} {{join .Deps " "}}{{end}}' $1 | awk -v module="$module" '
    FNR == NR { starts[module "/" $1] = 1; next }
    sub(/\.test$/, "", $1) { for (i = 1; i <= NF; i++) if ($i in starts) { print $1; next } }
  ' <(echo "$folders") -
}

case ${1:-} in
  in-process) grep -vE "$elsewhere|$kills|$processes" <<<"$all" ;;
  concurrent) concurrent "$(grep -vE "$elsewhere|$kills|$processes" <<<"$all")" ;;
  unit) go list ./cmd/... ./pkg/... | grep -vE '/pkg/(generated|registry|apiserver|helm/live)(/|$)' ;;
  processes) grep -E "$processes" <<<"$all" ;;
  kills) grep -E "$kills" <<<"$all" ;;
  elsewhere) grep -E "$elsewhere" <<<"$all" ;;
  *)
    echo "usage: hack/test-packages.sh in-process|concurrent|unit|processes|kills|elsewhere" >&2
    exit 2
    ;;
esac
