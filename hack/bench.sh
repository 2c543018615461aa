#!/usr/bin/env bash
# Runs every benchmark: those of the packages, and then the operator with real processes. Compare figures
# only within one run. Arguments go to the second part; see `go run ./test/bench -h`.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test -run '^$' -bench . -benchmem ./pkg/...

# In place of the shell, so that Ctrl-C reaches what stops the processes: `go run` forwards no signal.
go build -o bin/bench ./test/bench
exec bin/bench "$@"
