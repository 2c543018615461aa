#!/usr/bin/env bash
# Runs a real Omni on loopback, in a network and mount namespace of its own, and a command beside it:
#
#   OMNI_EULA_NAME=... OMNI_EULA_EMAIL=... unshare -nm --propagation private hack/omni/run.sh OMNI STUB COMMAND...
#
# OMNI and STUB are the two programs of this directory; OMNI may also be another Omni, 1.9.3 or newer. The command finds OMNI_ENDPOINT, OMNI_CA_FILE and
# OMNI_SERVICE_ACCOUNT_KEY (role Admin) in its environment, and the logs in OMNI_LOG_DIR. Its exit status is the script's.
# Omni's licence (BSL 1.1) grants this use, testing; the person who sets the two variables accepts Omni's EULA.
set -o errexit -o nounset -o pipefail

: "${OMNI_EULA_NAME:?set OMNI_EULA_NAME and OMNI_EULA_EMAIL to accept the EULA of Omni}" "${OMNI_EULA_EMAIL:?set it, too}"
omni=$1 stub=$2
shift 2

# Loopback is down in a new network namespace. Omni keeps a socket under a fixed path in /run.
ip link set lo up
mount -t tmpfs tmpfs /run

dir=$(mktemp -d)
pids=()
stop_all() {
  # Their data goes with them, so nothing is lost by not waiting for an orderly end.
  for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap stop_all EXIT

cd "$dir"
mkdir omnictl # Omni serves the files of this directory and insists that it exists
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=omni \
  -addext 'subjectAltName=IP:127.0.0.1,DNS:localhost' -addext basicConstraints=critical,CA:TRUE \
  -keyout tls.key -out tls.crt 2>openssl.log

"$stub" -listen 127.0.0.1:28500 >stub.log 2>&1 &
pids+=($!)
disown # the shell need not report that it was killed

# flag prints the first of the flags that this Omni has: releases rename them. Deprecated flags are missing in the help, but work: the
# last one is taken if the help has none.
help=$("$omni" --help 2>&1 || true)
flag() {
  while (($# > 1)); do
    if grep --quiet --extended-regexp -- "(^|[[:space:]])${1%%=*}([[:space:]=]|\$)" <<<"$help"; then break; fi
    shift
  done
  echo "$1"
}

# Omni 1.14 does not have --image-factory-address any more. BoltDB is deprecated there, but needs no key for the data.
"$omni" \
  --eula-accept-name="$OMNI_EULA_NAME" --eula-accept-email="$OMNI_EULA_EMAIL" \
  --storage-kind=boltdb --private-key-source=unused --sqlite-storage-path=omni.sqlite \
  --auth-auth0-enabled --auth-auth0-domain=auth.invalid --auth-auth0-client-id=unused \
  --create-initial-service-account --initial-service-account-key-path=admin.key --initial-service-account-lifetime=24h \
  --bind-addr=127.0.0.1:28080 --advertised-api-url=https://127.0.0.1:28080 --cert=tls.crt --key=tls.key \
  --k8s-proxy-bind-addr=127.0.0.1:28095 --advertised-kubernetes-proxy-url=https://127.0.0.1:28095 \
  --machine-api-bind-addr=127.0.0.1:28090 --machine-api-advertised-url=grpc://127.0.0.1:28090 \
  --siderolink-wireguard-bind-addr=127.0.0.1:28180 --siderolink-wireguard-advertised-addr=127.0.0.1:28180 \
  --metrics-bind-addr=127.0.0.1:28122 \
  --workload-proxying-enabled=false --local-resource-server-enabled=false \
  "$(flag --primary-factory-url=http://127.0.0.1:28500 --image-factory-address=http://127.0.0.1:28500)" --kubernetes-registry=127.0.0.1:28500/siderolabs/kubelet \
  >omni.log 2>&1 &
omni_pid=$!
pids+=("$omni_pid")
disown

ready() { curl --fail --silent --output /dev/null --cacert tls.crt https://127.0.0.1:28080/healthz && [[ -s admin.key ]]; }
for _ in $(seq 1 600); do
  ready && break
  if ! kill -0 "$omni_pid" 2>/dev/null; then
    echo "Omni ended at once; its log ends with:" >&2
    tail -n 5 omni.log >&2
    exit 1
  fi
  sleep 0.1
done
if ! ready; then
  echo "Omni was not ready after a minute; its log ends with:" >&2
  tail -n 5 omni.log >&2
  exit 1
fi

export OMNI_ENDPOINT=https://127.0.0.1:28080 OMNI_CA_FILE=$dir/tls.crt OMNI_LOG_DIR=$dir OMNI_SERVICE_ACCOUNT_KEY
OMNI_SERVICE_ACCOUNT_KEY=$(<admin.key)
cd "$OLDPWD"
"$@"
