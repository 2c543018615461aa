// Package deploy tests what is installed: the Helm chart in artifacts/chart, the kustomize base that
// is rendered from it, and the Dockerfile. Rendered objects are compared with golden files, applied to
// a real kube-apiserver, and the container arguments in them start the real programs.
//
//	go test ./test/deploy -update   # writes the golden files and artifacts/kustomize/base
package deploy
