#!/usr/bin/env bash
# Runs the tests with the build tag realomni against a real Omni: one that is built from hack/omni, or a binary that somebody has, each
# in network and mount namespaces of its own, or one that runs somewhere:
#
#   OMNI_EULA_NAME=... OMNI_EULA_EMAIL=... [OMNI_BINARY=FILE] hack/test-omni.sh [PACKAGE...] [-- TEST FLAGS...]
#   OMNI_ENDPOINT=https://... OMNI_SERVICE_ACCOUNT_KEY_FILE=FILE [OMNI_CA_FILE=FILE] hack/test-omni.sh [-- TEST FLAGS...]
#
# Without packages: every package that has such tests. Needs root or user namespaces, ip, openssl and curl. Setting the
# two variables accepts Omni's EULA; Omni's licence (BSL 1.1) grants its use for testing. See hack/omni/run.sh.
#
# In an Omni that runs somewhere, only the cluster scenario runs: it makes one cluster with a random name and removes it. The key is that
# of a service account with role Operator: OMNI_SERVICE_ACCOUNT_KEY or, so that it is in no list of processes, a file.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
compile() { go test -c -tags realomni,kustomize_disable_go_plugin_support,fieldsv1string -o "$1" "$2"; }

if [[ -n ${OMNI_ENDPOINT:-} ]]; then
  (($# == 0)) || [[ $1 == -- ]] || { echo "no packages with OMNI_ENDPOINT: only the cluster scenario runs" >&2; exit 1; }
  (($# == 0)) || shift # the --
  export OMNI_ENDPOINT OMNI_SERVICE_ACCOUNT_KEY
  if [[ -n ${OMNI_SERVICE_ACCOUNT_KEY_FILE:-} ]]; then OMNI_SERVICE_ACCOUNT_KEY=$(<"$OMNI_SERVICE_ACCOUNT_KEY_FILE"); fi
  : "${OMNI_SERVICE_ACCOUNT_KEY:?set OMNI_SERVICE_ACCOUNT_KEY_FILE}"
  go run ./test/env/tools >/dev/null
  compile "$bin/realomni" ./test/realomni
  cd test/realomni
  "$bin/realomni" -test.v -test.timeout 15m -test.run '^TestClusterScenario$' "$@"
  exit
fi

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
if [[ -n ${OMNI_BINARY:-} ]]; then
  version=$OMNI_BINARY
  (cd hack/omni && GOFLAGS=-mod=readonly go build -o "$bin/stub" ./stub)
  omni=("$(realpath "$OMNI_BINARY")" "$bin/stub")
else
  version=$(cd hack/omni && go list -m -f '{{.Version}}' github.com/siderolabs/omni)
  mapfile -t omni < <(go run ./test/env/tools omni)
fi
go run ./test/env/tools >/dev/null

user_namespace=()
((EUID == 0)) || user_namespace=(--user --map-root-user)

for package in "${packages[@]}"; do
  name=$(tr -c 'a-zA-Z0-9\n' '-' <<<"${package#./}")
  compile "$bin/$name" "$package"
  echo "== $package against Omni $version"
  # A package's tests run in its own directory, as with go test; each package gets an Omni of its own.
  (cd "$package" && unshare "${user_namespace[@]}" --net --mount --propagation private \
    "$OLDPWD/hack/omni/run.sh" "${omni[0]}" "${omni[1]}" "$bin/$name" -test.v -test.timeout 30m "$@")
done
