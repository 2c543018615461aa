#!/usr/bin/env bash
# Every test that docs/concepts/remote-safety.md names exists, and every row of the hazard tables is named there.
# A row is written as `go test -run` wants it: TestHazard/name_with_underscores.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

page=docs/concepts/remote-safety.md
tests=(test/e2e test/realomni pkg/controllers pkg/reconcile)
failures=0

complain() {
  echo "$page: $1" >&2
  failures=$((failures + 1))
}

while read -r test; do
  function=${test%%/*}
  grep --recursive --quiet --include='*_test.go' "^func $function(" "${tests[@]}" || complain "there is no test $function"

  if [[ $test == */* ]]; then
    row=${test#*/}
    grep --recursive --quiet --include='*_test.go' -E "(name: +|t\.Run\()\"${row//_/ }\"" "${tests[@]}" || complain "$function has no row \"${row//_/ }\""
  fi
done < <(grep -oE '`Test[A-Z][A-Za-z]*(/[^`]+)?`' "$page" | tr -d '`' | sort -u)

while read -r row; do
  grep --quiet --fixed-strings "/${row// /_}\`" "$page" || complain "does not name the row \"$row\""
done < <(grep --no-filename -oE '^\s+name: +"[^"]+"' test/e2e/hazard_*_test.go test/realomni/hazard_*_test.go | sed -E 's/^\s+name: +"(.*)"$/\1/')

((failures == 0))
