#!/usr/bin/env bash
# Go files are formatted by gofmt and pass go vet.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(git ls-files '*.go' ':!:pkg/generated' | xargs gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'run gofmt -w on:\n%s\n' "$unformatted"
  exit 1
fi
go vet ./...
