#!/usr/bin/env bash
# Runs golangci-lint with .golangci.yaml. The tool is built from its own module, so that none of what it needs becomes a
# dependency of this one.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run "$@" ./...
