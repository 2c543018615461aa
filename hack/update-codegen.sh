#!/usr/bin/env bash
# Regenerates everything under pkg/generated, every zz_generated file and the generated pages, with the generators of exactly
# the library version in go.mod. The tools are built into .tools/bin.
set -o errexit -o nounset -o pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
cd "$ROOT"
export GOBIN="$ROOT/.tools/bin"

THIS=omni.texashpc.com/omni-cluster-operator
BOILERPLATE="$ROOT/hack/boilerplate.go.txt"
# Nothing that is built imports this module, so it may not be in the module cache yet; `go list -m` would then
# print an empty directory.
go mod download k8s.io/code-generator
CODEGEN="$(go list -m -f '{{.Dir}}' k8s.io/code-generator)"
# shellcheck source=/dev/null
source "$CODEGEN/kube_codegen.sh"

kube::codegen::gen_helpers --boilerplate "$BOILERPLATE" "$ROOT/pkg/apis"

# intstr and autoscaling/v1 are part of our types or subresources; without their models in the document the
# references to them would dangle.
kube::codegen::gen_openapi \
  --output-dir "$ROOT/pkg/generated/openapi" --output-pkg "$THIS/pkg/generated/openapi" \
  --report-filename "$ROOT/hack/api-violations.list" --update-report \
  --output-model-name-file zz_generated.model_name.go \
  --extra-pkgs k8s.io/apimachinery/pkg/util/intstr --extra-pkgs k8s.io/api/autoscaling/v1 \
  --boilerplate "$BOILERPLATE" "$ROOT/pkg/apis"

# The generator writes extension values as strings; server-side apply only understands the boolean.
sed -i 's/"x-kubernetes-preserve-unknown-fields": "true"/"x-kubernetes-preserve-unknown-fields": true/' \
  "$ROOT/pkg/generated/openapi/zz_generated.openapi.go"

# The plural of OmniWorkers is OmniWorkers; the generator's rule would say omniworkerses.
kube::codegen::gen_client --with-watch --with-applyconfig \
  --plural-exceptions OmniWorkers:OmniWorkers \
  --output-dir "$ROOT/pkg/generated" --output-pkg "$THIS/pkg/generated" \
  --boilerplate "$BOILERPLATE" "$ROOT/pkg/apis"

# The generator of apply configurations writes omitempty whatever the types say. An empty list or map would be dropped, which is
# another manifest than one without it.
sed -i -E '/^\s+[A-Za-z]+ +(\[\]|map\[)/ s/,omitempty"/,omitzero"/' "$ROOT"/pkg/generated/applyconfiguration/omni/v1alpha1/*.go

go run ./hack/docgen "$ROOT"
go run ./hack/chartdoc "$ROOT/artifacts/chart/omni-cluster-operator"
