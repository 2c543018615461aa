#!/usr/bin/env bash
# Runs every check in hack/verify-*.sh and names those that fail.
set -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=()
for check in hack/verify-*.sh; do
  [ "$check" = hack/verify-all.sh ] && continue
  echo "== $check"
  "$check" || failed+=("$check")
done

if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
echo "all checks passed"
