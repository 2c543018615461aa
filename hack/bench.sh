#!/usr/bin/env bash
# Runs every benchmark. Compare figures only within one run.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test -run '^$' -bench . -benchmem ./pkg/...
