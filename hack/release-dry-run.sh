#!/usr/bin/env bash
# Builds what a release consists of into dist/, then once more from a copy of the sources: in another directory, without
# git, with an empty build cache, another time zone and other rights for new files. Both have to be the same to the bit.
# With TWICE=no there is no second time.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

COMMIT=$(hack/commit.sh)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export COMMIT SOURCE_DATE_EPOCH

echo "== building dist"
hack/release.sh build -out dist

if [ "${TWICE:-yes}" != no ]; then
  mkdir "$work/sources"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [ ! -e "$file" ] || printf '%s\0' "$file"
  done | tar --create --null --files-from=- | tar --extract --directory="$work/sources"

  echo "== building once more, in a copy of the sources and with an empty cache"
  (
    cd "$work/sources"
    umask 077
    export TZ=Pacific/Kiritimati GOCACHE="$work/cache"
    hack/release.sh build -out "$work/dist"
  )

  if ! diff --recursive "$work/dist" dist; then
    echo "a second build of the same sources differs" >&2
    exit 1
  fi
  echo "== both are the same to the bit"
fi

(cd dist && sha256sum --check --quiet checksums.txt && cat checksums.txt)
