#!/usr/bin/env bash
# Prints the packages of one group, a line each. Every package is in exactly one of them:
#   in-process  most: no child process but their own test program
#   processes   those that start a management cluster
#   kills       those that kill omni-apiserver again and again
#   elsewhere   those that have a target of their own, with programs that are built for it
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

elsewhere='/test/(e2eflux|e2ecertmanager)(/|$)'
kills='/test/durability(/|$)'
processes='/(test/(env|deploy|e2e)|pkg/helm/live)(/|$)'

all=$(go list ./...)

case ${1:-} in
  in-process) grep -vE "$elsewhere|$kills|$processes" <<<"$all" ;;
  processes) grep -E "$processes" <<<"$all" ;;
  kills) grep -E "$kills" <<<"$all" ;;
  elsewhere) grep -E "$elsewhere" <<<"$all" ;;
  *)
    echo "usage: hack/test-packages.sh in-process|processes|kills|elsewhere" >&2
    exit 2
    ;;
esac
