#!/usr/bin/env bash
# Prints the commit of the sources, with -dirty behind it if they differ from it. COMMIT may come from the environment, and
# is taken as it is: a copy of the sources without their repository has to be told that they differ, too.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ -z "${COMMIT:-}" ]; then
  COMMIT=$(git rev-parse HEAD)
  [ -z "$(git status --porcelain)" ] || COMMIT+=-dirty
fi

echo "$COMMIT"
