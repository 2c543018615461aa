#!/usr/bin/env bash
# Every test runs in one of the stages of hack/test.sh, or with a target of its own: no package is in no group, or in two,
# nothing but slow(t) leaves a test out of the first stage, what slow(t) leaves out is in the second, and what attackOnly(t)
# leaves out of both is in hack/attacks.sh.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failures=0

complain() {
  echo "$1" >&2
  failures=$((failures + 1))
}

groups=(in-process processes kills elsewhere)

while read -r count package; do
  [ "$count" -eq 1 ] || complain "hack/test-packages.sh: $package is in $count groups"
done < <({
  go list -find ./...
  for group in "${groups[@]}"; do hack/test-packages.sh "$group"; done
} | sort | uniq -c | awk '{ print $1 - 1, $2 }')

# The groups that a stage runs, and the packages that have a script of their own.
for group in in-process processes kills; do
  grep --quiet "hack/test-packages.sh $group" hack/test.sh || complain "hack/test.sh does not run the packages of group $group"
done

while read -r package; do
  grep --quiet --recursive "go test .*\./${package#*/omni-cluster-operator/}\b" --include='*.sh' hack || complain "no script in hack runs $package"
done < <(hack/test-packages.sh elsewhere)

# What -short leaves out runs in the second stage only if hack/slow-tests.sh finds it.
while read -r file; do
  [ "$file" = test/e2e/slow_test.go ] || complain "$file: begin a slow end-to-end test with slow(t); testing.Short leaves a test out of every stage"
done < <(git grep --untracked -lF 'testing.Short()' -- '*_test.go')

while read -r file; do
  [[ $file == test/e2e/* ]] || complain "$file: slow(t) is for test/e2e"
done < <(git grep --untracked -lE '^\s+slow\(' -- '*_test.go')

marked=$(cat test/e2e/*_test.go | grep -cE '^\s+slow\(')
listed=$({ hack/slow-tests.sh alone && hack/slow-tests.sh parallel; } | tr '|' '\n' | wc -l)
[ "$marked" -eq "$listed" ] || complain "hack/slow-tests.sh lists $listed of the $marked tests that begin with slow(t)"

# hack/attacks.sh runs the tests of one package whose names begin with TestAttack.
while read -r line; do
  [[ $line =~ ^test/e2e/.*=func\ TestAttack ]] || complain "${line%%=*}: name a test that begins with attackOnly(t) TestAttack..., in test/e2e, for hack/attacks.sh runs those"
done < <(git grep --untracked -pE '^\s+attackOnly\(t\)' -- '*_test.go' | grep -E '=func' || true)

# A stage sets no build tag; a target of its own may.
while read -r tag; do
  [[ $tag =~ ^(linux|unix|windows|darwin)$ ]] || grep --quiet --recursive -E "go test .*-tags[= ][^ ]*\b$tag\b" --include='*.sh' hack ||
    complain "no script in hack builds tests with the tag $tag"
done < <(git grep --untracked -hE '^//go:build' -- '*_test.go' | grep -oE '[a-z_0-9]+' | grep -vxE 'go|build' | sort -u)

((failures == 0))
