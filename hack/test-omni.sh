#!/usr/bin/env bash
# Runs the tests with the build tag realomni against a real Omni, in network and mount namespaces of their own:
#
#   OMNI_EULA_NAME=... OMNI_EULA_EMAIL=... hack/test-omni.sh [PACKAGE...] [-- TEST FLAGS...]
#
# Without packages: every package that has such tests. Needs root or user namespaces, ip, openssl and curl. Setting the
# two variables accepts Omni's EULA; Omni's licence (BSL 1.1) grants its use for testing. See hack/omni/run.sh.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${OMNI_EULA_NAME:?set OMNI_EULA_NAME and OMNI_EULA_EMAIL to accept the EULA of Omni}" "${OMNI_EULA_EMAIL:?set it, too}"

packages=()
while (($# > 0)) && [[ $1 != -- ]]; do
  packages+=("$1")
  shift
done
(($# == 0)) || shift # the --

if ((${#packages[@]} == 0)); then
  mapfile -t packages < <(grep --recursive --files-with-matches --include='*_test.go' '^//go:build realomni$' test pkg |
    xargs --no-run-if-empty dirname | sort --unique | sed 's,^,./,')
fi
if ((${#packages[@]} == 0)); then
  echo "no package has tests with the build tag realomni" >&2
  exit 1
fi

# Everything is compiled out here: the namespace has no way to the module proxy.
(cd hack/omni && GOFLAGS=-mod=readonly go test ./stub)
mapfile -t omni < <(go run ./test/env/tools omni)
go run ./test/env/tools >/dev/null
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

user_namespace=()
((EUID == 0)) || user_namespace=(--user --map-root-user)

for package in "${packages[@]}"; do
  name=$(tr -c 'a-zA-Z0-9\n' '-' <<<"${package#./}")
  go test -c -tags realomni,kustomize_disable_go_plugin_support,fieldsv1string -o "$bin/$name" "$package"
  echo "== $package against Omni $(cd hack/omni && go list -m -f '{{.Version}}' github.com/siderolabs/omni)"
  # A package's tests run in its own directory, as with go test; each package gets an Omni of its own.
  (cd "$package" && unshare "${user_namespace[@]}" --net --mount --propagation private \
    "$OLDPWD/hack/omni/run.sh" "${omni[0]}" "${omni[1]}" "$bin/$name" -test.v -test.timeout 30m "$@")
done
