#!/usr/bin/env bash
# go.mod lists what the code imports, no more and no less, and the module cache is intact.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go mod tidy -diff
go -C test/promql mod tidy -diff
