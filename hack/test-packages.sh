#!/usr/bin/env bash
# Prints the packages of one group, a line each. Every package is in exactly one of them:
#   in-process  most: no child process but their own test program
#   processes   those that start a management cluster
#   kills       those that kill omni-apiserver again and again
#   elsewhere   those that have a target of their own, with programs that are built for it
# And the packages of in-process that the race detector has something to look at in:
#   concurrent  those whose own code starts something that runs beside it, or guards what several use
# And those of `make test-unit`:
#   unit        those of the product whose tests start no process and no etcd
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

elsewhere='/test/(e2eflux|e2ecertmanager)(/|$)'
kills='/test/durability(/|$)'
processes='/test/(env|deploy|e2e|helmlive)(/|$)'

all=$(go list -find ./...)

# concurrent prints the packages whose own code starts a goroutine or a process, serves, or guards what several use. What only
# their tests start, or only what they import, is raced where it belongs.
concurrent() {
  local starts='^\s*go (func\b|[A-Za-z_.]+\()|\.(Go|AfterFunc)\(|\bexec\.Command|\bnet\.Listen|grpc\.NewServer|wait\.(Until|Poll)|^\s*"(sync(/atomic)?|golang\.org/x/sync/.*)"$'
  git grep --untracked -lE "$starts" -- '*.go' ':!*_test.go' ':!pkg/generated' ':!test/foreigntest' |
    xargs -n 1 dirname | sort -u | sed "s|^|$(go list -m)/|" | grep -Fx "$1"
}

case ${1:-} in
  in-process) grep -vE "$elsewhere|$kills|$processes" <<<"$all" ;;
  concurrent) concurrent "$(grep -vE "$elsewhere|$kills|$processes" <<<"$all")" ;;
  unit) go list -find ./cmd/... ./pkg/... | grep -vE '/pkg/(generated|registry|apiserver)(/|$)' ;;
  processes) grep -E "$processes" <<<"$all" ;;
  kills) grep -E "$kills" <<<"$all" ;;
  elsewhere) grep -E "$elsewhere" <<<"$all" ;;
  *)
    echo "usage: hack/test-packages.sh in-process|concurrent|unit|processes|kills|elsewhere" >&2
    exit 2
    ;;
esac
