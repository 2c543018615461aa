#!/usr/bin/env bash
# Runs the operator together with Flux: the real source-, kustomize- and helm-controller, built from hack/flux
# on the first run (ten minutes and more on two cores) and then kept in the user's cache directory.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null
go run ./test/env/tools flux >/dev/null

go test -count=1 -timeout 20m -v ./test/e2eflux
