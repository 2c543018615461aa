#!/usr/bin/env bash
# Generated code is what the generators make of the types: regenerate, and nothing may change.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generated=(pkg/generated pkg/apis hack/api-violations.list docs/reference artifacts/chart/omni-cluster-operator/README.md)
before=$(git status --porcelain -- "${generated[@]}"; git diff -- "${generated[@]}")
hack/update-codegen.sh >/dev/null
after=$(git status --porcelain -- "${generated[@]}"; git diff -- "${generated[@]}")

if [ "$before" != "$after" ]; then
  echo "generated code is stale: run 'make generate' and commit the result"
  git status --short -- "${generated[@]}"
  exit 1
fi
