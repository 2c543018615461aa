#!/usr/bin/env bash
# Runs the tests. `fast` is the first stage: all of them without the race detector, but for those that kill our programs
# or wait for minutes. `slow` is the rest: the race detector, the fuzz targets for a moment, and what the first stage left
# out. The tests with Flux, those with cert-manager and the long run of kills have targets of their own.
# More arguments are options of `go test`, those that are for the test program. `make verify` vets, so the stages do not.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null
go run ./test/env/tools operator >/dev/null

# Linking takes a third of the time without what only debuggers read, and there are a hundred test programs.
export GOFLAGS="${GOFLAGS:-} -ldflags=-s"

# The data of the processes that tests start is thrown away. Kept in memory, where there is room, it does not wait for a disk; a
# process that is killed loses nothing of it. What is built stays on the disk, and so does t.TempDir, which follows GOTMPDIR.
if [ "$(df --output=avail --block-size=G /dev/shm 2>/dev/null | tail -n 1 | tr -dc 0-9)" -ge 16 ] 2>/dev/null; then
  export GOTMPDIR=${TMPDIR:-/tmp} TMPDIR=/dev/shm
fi

fast() {
  local others
  others=$(hack/test-packages.sh processes | grep -v '/test/e2e$' && hack/test-packages.sh in-process)
  prepare

  # The longest by far, so it runs beside the others, which print as they end. Two packages with processes share the
  # cores well: they wait for them half of the time.
  begin e2e go test -vet=off -short -timeout 30m "$@" ./test/e2e
  begin promql go -C test/promql test -timeout 10m "$@" ./...
  # Garbage is collected rarely, because that costs processor time; test/env keeps this from the programs it starts.
  # shellcheck disable=SC2086 # a list of packages
  GOGC=400 go test -vet=off -short -p 2 -timeout 30m "$@" $others 2>&1 | tee "$output/others" || failed+=(others)
  finish promql e2e
  report
}

slow() {
  local kills alone parallel concurrent
  kills=$(hack/test-packages.sh kills)
  alone=$(hack/slow-tests.sh alone)
  parallel=$(hack/slow-tests.sh parallel)
  concurrent=$(hack/test-packages.sh concurrent)
  prepare

  # All of this waits most of the time, so it runs side by side, each with a management cluster of its own.
  # shellcheck disable=SC2086 # a list of packages
  begin kills go test -vet=off -timeout 30m "$@" $kills
  go test -vet=off -c -o "$output/e2e.test" ./test/e2e
  begin hazards e2e "$@" -run '^TestHazardAlone$' # as long as all other that run alone
  begin alone e2e "$@" -run "$alone" -skip '^TestHazardAlone$'
  begin parallel e2e "$@" -run "$parallel"
  # What needs the cores has what the others leave. The detector makes collecting garbage dear, so there is less of it. At its
  # end a program waits for what its tests left running, by default for a second, in which each of fifty programs does
  # nothing else; a report that has begun is always waited for, and what a test itself does is over by then.
  # shellcheck disable=SC2086 # a list of packages
  begin race nice -n 19 env CGO_ENABLED=1 GOGC=400 GORACE=atexit_sleep_ms=100 go test -vet=off -race -timeout 30m "$@" $concurrent
  # The seeds of every fuzz target are tests of the first stage. Fuzzed for a moment is what reads all foreign text; elsewhere the
  # fuzzer's instruments are a build of minutes (`make fuzz`). It is counted, because how fast it is depends on what runs beside it.
  begin fuzz nice -n 19 env FUZZTIME=10000x hack/fuzz.sh ./pkg/foreign/...
  finish kills hazards alone parallel fuzz race
  report
}

# e2e OPTION...: runs the end-to-end tests that slow has built, with options of `go test` that are for the test program.
e2e() {
  cd test/e2e && "$output/e2e.test" -test.timeout 30m "${@/#-/-test.}"
}

# prepare makes ready what the functions below need. A stage that is stopped stops its parts.
prepare() {
  declare -gA parts=()
  failed=()
  output=$(mktemp -d)
  trap stop EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# report says what failed, if anything did: the last lines are the tests' names and messages, which else are far above.
report() {
  if [ ${#failed[@]} -eq 0 ]; then
    return
  fi

  local part
  for part in "${failed[@]}"; do
    echo "FAILED: $part"
    if [ -f "$output/$part" ]; then
      grep -E -A 12 '^ *--- FAIL:|^WARNING: DATA RACE|^panic:' "$output/$part" | head -n 120 | sed 's/^/  /' || true
    fi
  done >&2

  exit 1
}

# begin NAME COMMAND...: starts a part of a stage. It prints when it has ended, so that parts do not mix.
begin() {
  local name=$1
  shift

  set -m # a process group for each part, so that stop reaches what the part has started
  "$@" >"$output/$name" 2>&1 &
  parts[$name]=$!
  set +m
}

# finish NAME...: waits for these parts, in this order, and adds those that fail to the list.
finish() {
  local name
  for name in "$@"; do
    wait "${parts[$name]}" || failed+=("$name")
    unset "parts[$name]"
    echo "== $name"
    cat "$output/$name"
  done
}

# stop ends the parts that still run: nobody waits for them any more.
stop() {
  local part
  for part in "${parts[@]}"; do
    kill -TERM -- "-$part" 2>/dev/null || true
  done

  rm -rf "$output"
}

case ${1:-} in
  fast | slow) "$@" ;;
  *)
    echo "usage: hack/test.sh fast|slow [options of go test]" >&2
    exit 2
    ;;
esac
