#!/usr/bin/env bash
# Prints what `go test -run` wants for the end-to-end tests that `make test` leaves out: those that begin with slow(t).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=$(awk '
  /^func Test[A-Za-z0-9]*\(t \*testing\.T\) \{$/ { name = $2; sub(/\(.*/, "", name); first = FNR + 1; next }
  FNR == first && /^\tslow\(t\)$/ { print name; next }
  /^\t+slow\(/ { print FILENAME ": slow(t) is not the first line of its test" > "/dev/stderr"; exit 1 }
' test/e2e/*_test.go | sort)

[ -n "$names" ] || { echo "test/e2e has no slow tests" >&2; exit 1; }

echo "^($(paste -sd '|' <<<"$names"))\$"
