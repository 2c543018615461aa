#!/usr/bin/env bash
# Prints the linker flags that tell the programs their version. VERSION and COMMIT may come from the
# environment, where there is no repository; otherwise git describes the sources.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=$(go list -m)/pkg/version

version=${VERSION:-$(git describe --tags --match 'v*' --dirty 2>/dev/null || true)}
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}

if [ -z "${COMMIT:-}" ] && [ -n "$commit" ] && [ -n "$(git status --porcelain 2>/dev/null)" ]; then
  commit+=-dirty
fi

echo "-X $package.release=$version -X $package.commit=$commit"
