#!/usr/bin/env bash
# Fails if there is a function that neither a program nor a test of this module can reach, the tests against a real Omni included.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unreachable=$(go run golang.org/x/tools/cmd/deadcode@v0.52.0 -test -tags kustomize_disable_go_plugin_support,fieldsv1string,realomni ./...)
if [ -n "$unreachable" ]; then
  echo "$unreachable"
  echo "No program and no test reaches these functions: remove them" >&2
  exit 1
fi
