#!/usr/bin/env bash
# Runs the tests. `fast` is the first stage: all of them without the race detector, but for those that kill our programs
# or wait for minutes. `slow` is the rest: the race detector, the fuzz targets for a moment, and what the first stage left
# out. The tests with Flux, those with cert-manager and the long run of kills have targets of their own.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Packages whose tests start processes, and so share the machine: they run two at a time, in the first stage or in the second.
elsewhere='/test/(e2eflux|e2ecertmanager)(/|$)'
processes='/(test/(env|deploy|e2e)|pkg/helm/live)(/|$)'
kills='/test/durability(/|$)'

all=$(go list ./... | grep -vE "$elsewhere")
in_process=$(grep -vE "$processes|$kills" <<<"$all")

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null

# shellcheck disable=SC2046,SC2086 # lists of packages
case ${1:-} in
  fast)
    go test -short -p 3 -timeout 30m "${@:2}" $(grep -E "$processes" <<<"$all") $in_process
    ;;
  slow)
    # Both wait most of the time.
    status=0
    go test -timeout 30m "${@:2}" $(grep -E "$kills" <<<"$all") &
    go test -timeout 30m -run "$(hack/slow-tests.sh)" "${@:2}" ./test/e2e || status=$?
    wait $! || status=$?
    ((status == 0)) || exit "$status"

    go test -race -timeout 15m "${@:2}" $in_process
    # The seeds of every fuzz target have run as tests above. Fuzzed for a moment is what reads all foreign text;
    # elsewhere the fuzzer's instruments are a build of minutes (`make fuzz`).
    FUZZTIME=5s hack/fuzz.sh ./pkg/foreign/...
    ;;
  *)
    echo "usage: hack/test.sh fast|slow [go test's options]" >&2
    exit 2
    ;;
esac
