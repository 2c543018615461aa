#!/usr/bin/env bash
# Runs every attack on omni-apiserver and omni-controller: each alone, on a stack of its own, and all of them at the same
# time. Where the machine allows it (Linux, root outside of a container), both programs have the memory limits of their Pods.
# At its end it prints the largest peaks as a table, the one of docs/concepts/threat-model.md. It takes an hour.
# COUNT is how often everything runs (2), WORKERS_COUNT how often the attacks on the memory of workers do (10).
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built before, so that a cold build does not count against a test's time.
go run ./test/env/tools >/dev/null

export ATTACKS=1
count=${COUNT:-2} workers_count=${WORKERS_COUNT:-10}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0

# attack COUNT PATTERN...: runs attacks so often, and goes on after one that fails.
attack() {
  go test ./test/e2e -count="$1" -run "$2" -v -timeout 120m 2>&1 | tee -a "$output" || failed=1
}

attack "$count" '^TestAttack'
if ((workers_count > count)); then
  attack "$((workers_count - count))" '^TestAttackAlone$/^A_template_that_repeats'
fi

# A row of a test is | attack | what it took before there were bounds | MiB | MiB |.
echo
echo "| Attack | What it was, before there were bounds | \`omni-apiserver\`, of 1024 MiB | \`omni-controller\` and its processes, of 768 MiB |"
echo "|---|---|---|---|"
sed -nE 's/^.*(\| .* \| .* \| [0-9]+ \| [0-9]+ \|)$/\1/p' "$output" | awk -F ' *\\| *' '
  !($2 in before) { names[++n] = $2; before[$2] = $3 }
  { if ($4 > server[$2]) server[$2] = $4; if ($5 > controller[$2]) controller[$2] = $5 }
  END { for (i = 1; i <= n; i++) print "| " names[i] " | " before[names[i]] " | " server[names[i]] " | " controller[names[i]] " |" }'

exit "$failed"
