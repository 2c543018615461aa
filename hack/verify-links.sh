#!/usr/bin/env bash
# Links between pages lead somewhere, and docs/README.md lists every page below docs, or its folder.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/links .
