#!/usr/bin/env bash
# Runs every test: first the in-process ones with the race detector, then those that start real processes
# (the packages below test/env, test/e2e, test/durability and test/deploy, and Helm's against a real API server), two packages at
# a time because they share the machine. The tests with Flux, those with cert-manager and the long run of kills have
# targets of their own.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

in_process=$(go list ./... | grep -vE '/(test/(env|e2e|e2eflux|e2ecertmanager|durability|deploy)|pkg/helm/live)(/|$)')
with_processes=$(go list ./test/env/... ./test/e2e/... ./test/durability/... ./test/deploy/... ./pkg/helm/live/...)

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null

# shellcheck disable=SC2086 # lists of packages
go test -race -timeout 15m $in_process
# The seeds of every fuzz target have run as tests above. Fuzzed for a moment is what reads all foreign text; elsewhere the
# fuzzer's instruments are a build of minutes (`make fuzz`).
FUZZTIME=5s hack/fuzz.sh ./pkg/foreign/...

# shellcheck disable=SC2086
go test -p 2 -timeout 40m $with_processes
