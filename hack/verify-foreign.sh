#!/usr/bin/env bash
# Foreign text is read by pkg/foreign only: no direct use of a library's decoder that hack/foreign/allowed.txt does not name.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/foreign .
