#!/usr/bin/env bash
# Kills omni-apiserver again and again under writes, and looks for every acknowledged write after each restart.
# KILLS is how often (100), SEED repeats an earlier run's choices (printed; default: another one each time).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before, so that a cold build does not count against the test's time.
go run ./test/env/tools >/dev/null

exec go test ./test/durability -run '^TestAcknowledgedWritesSurviveKill$' -count=1 -v -timeout 60m \
  -args -kills "${KILLS:-100}" -seed "${SEED:-0}"
