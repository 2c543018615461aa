#!/usr/bin/env bash
# Prints the packages of `make test-unit`: all but those whose tests start processes or an etcd.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go list ./cmd/... ./pkg/... | grep -vE '/pkg/(generated|registry|apiserver|helm/live)(/|$)'
