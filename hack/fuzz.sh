#!/usr/bin/env bash
# Fuzzes every target of the packages that are named (default: all), each for FUZZTIME (default: 1m). An input that fails
# is written below testdata/fuzz of its package: commit it with the fix, and it is a test from then on.
# The first run builds everything anew, with the instruments of Go's fuzzer.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fuzztime=${FUZZTIME:-1m}
patterns=("${@:-./...}")

# Listing builds a test program, so only where there is a target.
mapfile -t folders < <(go list -f '{{$dir := .Dir}}{{range .TestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}' "${patterns[@]}" |
  xargs -r grep -lE '^func Fuzz[A-Z0-9_]' | xargs -r -n 1 dirname | sort -u)

failed=() count=0
for folder in "${folders[@]}"; do
  targets=$(go test -list '^Fuzz' "$folder" | grep '^Fuzz' || true)

  for target in $targets; do
    echo "== $target (${folder#"$PWD"/}), $fuzztime"
    count=$((count + 1))
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10s "$folder" || failed+=("$target in ${folder#"$PWD"/}")
  done
done

if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi

if [ "$count" -eq 0 ]; then
  echo "there is no fuzz target in ${patterns[*]}" >&2
  exit 1
fi
echo "$count fuzz targets, $fuzztime each: nothing found"
