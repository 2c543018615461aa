#!/usr/bin/env bash
# GitHub's workflows are valid: actionlint, which is built once. What we ask of them besides is in hack/workflows.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Scripts in workflows are single calls of make, so that shellcheck, which not every machine has, finds nothing to say.
go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=
