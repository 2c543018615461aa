#!/usr/bin/env bash
# Prints what `go test -run` wants for the end-to-end tests that `make test` leaves out: those that begin with slow(t).
# `alone` are those that are not parallel, because they stop the programs that all tests of a run share; `parallel` are
# the others.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1:-} in
  alone | parallel) ;;
  *)
    echo "usage: hack/slow-tests.sh alone|parallel" >&2
    exit 2
    ;;
esac

names=$(awk -v wanted="$1" '
  function tell() { if (name != "" && kind == wanted) print name; name = "" }

  /^func Test[A-Za-z0-9]*\(t \*testing\.T\) \{$/ { tell(); test = $2; sub(/\(.*/, "", test); first = FNR + 1; next }
  FNR == first && /^\tslow\(t\)$/ { name = test; kind = "alone"; next }
  FNR == first + 1 && /^\tt\.Parallel\(\)$/ { kind = "parallel" }
  /^\t+slow\(/ { print FILENAME ": slow(t) is not the first line of its test" > "/dev/stderr"; failed = 1; exit 1 }
  END { if (failed) exit 1; tell() }
' test/e2e/*_test.go | sort)

[ -n "$names" ] || { echo "test/e2e has no slow tests that are $1" >&2; exit 1; }

paste -sd '|' <<<"$names" | sed 's/.*/^(&)$/'
