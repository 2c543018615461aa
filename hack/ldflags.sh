#!/usr/bin/env bash
# Prints the linker flags that tell the programs their version. VERSION and COMMIT may come from the
# environment, where there is no repository; otherwise git describes the sources.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

package=$(go list -m)/pkg/version

version=${VERSION:-$(git describe --tags --match 'v*' --dirty 2>/dev/null || true)}
commit=$(hack/commit.sh 2>/dev/null || true)

echo "-X $package.release=$version -X $package.commit=$commit"
