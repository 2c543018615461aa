#!/usr/bin/env bash
# The import rules of docs/development/architecture.md: which package may use which.
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(go list -m)
failures=0

# refuse WHY PATTERN: reads lines "package import" and complains about those that match.
refuse() {
  local hits
  hits=$(grep -E "$2" || true)
  if [ -n "$hits" ]; then
    printf '%s:\n%s\n' "$1" "$hits"
    failures=$((failures + 1))
  fi
}

imports() { go list -f '{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}' "$@" | sed '/^$/d'; }
deps() { go list -deps "$1" | sed "s|^|$1 |"; }

apiserver_deps=$(deps ./cmd/apiserver)
controller_deps=$(deps ./cmd/controller)
plugin_deps=$(deps ./cmd/kubectl-omni)
all_imports=$(imports ./cmd/... ./pkg/... ./test/...)
controller_imports=$(grep -E "^$module/pkg/controllers(/| )" <<<"$all_imports")

# What speaks to the world outside, and stands beside the controllers: each with the packages below it.
engines="$module/pkg/(omni|clusteraccess|helm|export)"
engine_imports=$(grep -E "^$engines(/| )" <<<"$all_imports")
# What all controllers run on.
floor_imports=$(grep -E "^$module/pkg/reconcile(/| )" <<<"$all_imports")

refuse "the API server must not contain controllers, engines, controller-runtime or Helm" \
  " ($module/pkg/(controllers|reconcile)(/|$)|$engines(/|$)|sigs\.k8s\.io/controller-runtime|helm\.sh/helm)" <<<"$apiserver_deps"

# The one exception: what asks who reads the metrics (cmd/controller) brings two packages of k8s.io/apiserver along.
review=' k8s\.io/apiserver/pkg/server/(dynamiccertificates|egressselector(/metrics)?)$'
refuse "the controller must contain neither validation, the registry, the API server nor the plugin's commands" \
  " ($module/pkg/(registry|apiserver|admission|apis/omni/validation|export|migrate)(/|$)|k8s\.io/apiserver/pkg/(registry|server|storage)(/|$))" < <(grep -vE "$review" <<<"$controller_deps")

# Of the engines it has what its command export needs.
refuse "the plugin must contain neither controllers, Helm nor the API server" \
  " ($module/pkg/(controllers|registry|apiserver|admission|clusteraccess|helm)(/|$)|helm\.sh/helm|sigs\.k8s\.io/controller-runtime|k8s\.io/apiserver/)" <<<"$plugin_deps"

refuse "only cmd/controller asks who reads the metrics" . < <(
  grep ' sigs\.k8s\.io/controller-runtime/pkg/metrics/filters$' <<<"$all_imports" | grep -vE "^$module/cmd/controller/app ")

refuse "engines never import controllers" " $module/(pkg/controllers|cmd)(/|$)" <<<"$engine_imports"

refuse "plan and observe read a state and know neither the local copy, a connection nor each other" \
  "^$module/pkg/omni/(plan $module/pkg/omni/(mirror|session|observe)|observe $module/pkg/omni/(mirror|session|plan))$" <<<"$engine_imports"

refuse "only tests use what is made for tests" . < <(
  grep -E " $module/(test/|pkg/[^ ]*test$)" <<<"$all_imports" | grep -vE "^$module/(test/|pkg/[^ ]*test )")

refuse "pkg/reconcile imports neither controllers nor engines" " ($module/(pkg/controllers|cmd)|$engines)(/|$)" <<<"$floor_imports"

refuse "only pkg/template, validation, pkg/omni and tests' own packages import the Omni client" . < <(
  grep ' github.com/siderolabs/omni/client' <<<"$all_imports" |
    grep -vE "^$module/(pkg/template|pkg/apis/omni/validation|pkg/omni|test/omnisim|test/omnitest)(/| )")

refuse "only pkg/helm imports Helm" . < <(
  grep ' helm\.sh/helm/' <<<"$all_imports" | grep -vE "^$module/pkg/helm(/| )")

refuse "only the benchmark draws plots" . < <(
  grep ' gonum\.org/v1/plot' <<<"$all_imports" | grep -vE "^$module/test/bench ")

refuse "only the worker processes parse what chart repositories send" . < <(
  grep " $module/pkg/helm/charts/parse$" <<<"$all_imports" | grep -vE "^$module/pkg/helm/render/worker ")

refuse "controllers and engines use v1alpha1, never validation, registry or k8s.io/apiserver" \
  " ($module/pkg/apis/omni/(validation|install)|$module/pkg/registry.*|k8s\.io/apiserver.*)$" \
  < <(printf '%s\n' "$controller_imports" "$engine_imports" "$floor_imports")

refuse "a controller does not import another's package" . < <(awk -v m="$module/pkg/controllers/" '
  index($1, m) == 1 && index($2, m) == 1 {
    split(substr($1, length(m) + 1), from, "/"); split(substr($2, length(m) + 1), to, "/")
    if (from[1] != to[1]) print
  }' <<<"$controller_imports")

refuse "what decides about changes does nothing: no call, no client, no clock, no lock" \
  "^$module/pkg/(controllers/omnicluster/consent|rollout) (context|sync|os|net(/.*)?|k8s\.io/client-go.*|sigs\.k8s\.io/controller-runtime.*|$module/pkg/(omni/(session|mirror)|clusteraccess|helm)(/.*)?)$" <<<"$all_imports"

refuse "v1alpha1 imports apimachinery only" "^$module/pkg/apis/omni/v1alpha1 k8s\.io/(api/|apiextensions)" <<<"$all_imports"

exit $((failures > 0))
