#!/usr/bin/env bash
# Runs hack/release with what it has to know of the sources: hack/release.sh check|build|push|sign|github [options].
# COMMIT, SOURCE_DATE_EPOCH, REGISTRY and DOWNLOADS may come from the environment.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

COMMIT=$(hack/commit.sh)
export COMMIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export REGISTRY=${REGISTRY:-registry.example.com}
export DOWNLOADS=${DOWNLOADS:-https://downloads.example.com}

exec go run ./hack/release "$@"
