#!/usr/bin/env bash
# Names use the field's words: none of those in hack/words/banned.txt.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/words .
