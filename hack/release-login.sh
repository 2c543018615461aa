#!/usr/bin/env bash
# Logs in to the registry of a release. The password comes from the environment and goes through standard input, so that
# no list of processes shows it.
set -o errexit -o nounset -o pipefail

: "${REGISTRY:?}" "${REGISTRY_USERNAME:?}" "${REGISTRY_PASSWORD:?}"

docker login "${REGISTRY%%/*}" --username "$REGISTRY_USERNAME" --password-stdin <<<"$REGISTRY_PASSWORD"
