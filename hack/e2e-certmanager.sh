#!/usr/bin/env bash
# Installs the chart beside the real cert-manager, built from hack/certmanager on the first run (three minutes and more on
# two cores) and then kept in the user's cache directory, and prints a table of what each step cost.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null
go run ./test/env/tools certmanager

go test -count=1 -timeout 30m -v ./test/e2ecertmanager
