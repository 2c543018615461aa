#!/usr/bin/env bash
# Freezes what a release installs and stores, as test data for the releases after it: hack/freeze.sh VERSION writes
# test/testdata/frozen/VERSION. What is there is never written again.
#   values, rendered   the sets of values of test/deploy, and what the chart renders from them
#   snapshot.db.gz     a snapshot, as docs/how-to/backup.md takes it, of objects of all kinds that the running stack made
#   objects.json       the same objects, as kubectl reads them
set -o errexit -o nounset -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=${1:?usage: hack/freeze.sh VERSION}
target=test/testdata/frozen/$version
[ ! -e "$target" ] || { echo "$target is there already" >&2; exit 1; }

go build -o bin/demo ./test/demo
CGO_ENABLED=0 go build -o bin/omni-apiserver ./cmd/apiserver

work=$(mktemp -d)
stack=
trap '[ -z "$stack" ] || kill -INT "$stack"; wait; rm -rf "$work"' EXIT

bin/demo --up >"$work/log" 2>&1 &
stack=$!

until grep --quiet '^Ctrl-C stops' "$work/log"; do
  kill -0 "$stack" || { cat "$work/log" >&2; exit 1; }
  sleep 1
done

# said NAME: what the running stack prints for NAME=.
said() { sed -nE "s/^ *(export )?$1=//p" "$work/log" | head -n 1; }

KUBECONFIG=$(said KUBECONFIG)
admin=$(said ADMIN)
data=$(sed -nE "s|.*Logs are in (.*)/logs\.$|\1/omni-etcd|p" "$work/log")
export KUBECONFIG
PATH=$(dirname "$(sed -nE 's/^kubectl is at (.*) if you have none\.$/\1/p' "$work/log")"):$PATH

kubectl config set-context --current --namespace=omni-cluster-operator-system
kubectl --kubeconfig="$admin" create namespace apps
kubectl --kubeconfig="$admin" create rolebinding cluster-automation --clusterrole=edit --group=cluster-automation -n apps
kubectl create secret docker-registry registry-credentials --docker-username=robot --docker-password=secret

examples=artifacts/examples
kubectl apply -f $examples/cluster.yaml -f $examples/controlplane.yaml -f $examples/workers-static.yaml -f $examples/workers-class.yaml \
  -f $examples/machine.yaml -f $examples/kubeconfig-export.yaml -f $examples/secret-sync.yaml -f "$(said RELEASE)"
kubectl apply -f hack/frozen/unusual.yaml

kubectl wait --for=condition=Ready --timeout=3m oconn/omni ocl/cluster-01 ocp/cluster-01 ow/cluster-01-storage ow/cluster-01-workers \
  om/cluster-01-storage-1 oke/cluster-01-automation oss/cluster-01-registry ohr/cluster-01-podinfo
sleep 5 # what waits for others says so by now

# Nothing may change between the two readings.
for _ in {1..20}; do
  kubectl get omni -o json --show-managed-fields >"$work/before.json"
  rm -f "$work/snapshot.db"*
  bin/omni-apiserver snapshot save "$work/snapshot.db" --etcd-data-dir="$data"
  kubectl get omni -o json --show-managed-fields >"$work/objects.json"
  ! cmp --silent "$work/before.json" "$work/objects.json" || break
done
cmp "$work/before.json" "$work/objects.json"

mkdir -p "$target/values" "$target/rendered"
gzip -9 --no-name --stdout "$work/snapshot.db" >"$target/snapshot.db.gz"
cp "$work/objects.json" "$target/"
cp test/deploy/testdata/values/*.yaml "$target/values/"
cp test/deploy/testdata/golden/*.yaml "$target/rendered/"
: >"$target/values/default.yaml"
echo "$target is written"
