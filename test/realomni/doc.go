// Package realomni runs the cluster scenario against a real Omni server: sync, change, suspend,
// drift made with another client, delete; the hazards; an export of a foreign cluster; kubeconfigs,
// issued, renewed, moved and in both formats. It is opt-in (`make test-omni`): its tests carry the
// build tag realomni and find the server in OMNI_ENDPOINT, OMNI_SERVICE_ACCOUNT_KEY and
// OMNI_CA_FILE. The server has no machines, so the cluster is synced but never runs.
package realomni
