package env

import (
	"context"
	"io"
	"path/filepath"
)

// KubernetesVersion is the version of the Kubernetes programs that hack/kube builds. It is
// stamped into them, because a plain "go build" leaves v0.0.0 and clients complain.
const KubernetesVersion = "v1.37.2"

// Tools holds the paths of the Kubernetes programs.
type Tools struct {
	// KubeAPIServer, KubeControllerManager, Kubectl and Etcd are absolute paths.
	KubeAPIServer         string
	KubeControllerManager string
	Kubectl               string
	Etcd                  string
}

// toolPackages lists what to build, in hack/kube.
func toolPackages() []string {
	return []string{
		"k8s.io/kubernetes/cmd/kube-apiserver",
		"k8s.io/kubernetes/cmd/kube-controller-manager",
		"k8s.io/kubernetes/cmd/kubectl",
		"go.etcd.io/etcd/server/v3",
	}
}

// EnsureTools returns the Kubernetes programs. If the user's cache directory has none for this
// state of hack/kube and this Go version, they are built first, which takes about five minutes
// on two cores; progress gets a line now and then. Programs that call it at the same time
// wait for one build.
func EnsureTools(ctx context.Context, progress io.Writer) (Tools, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return Tools{}, err
	}

	module := filepath.Join(root, "hack", "kube")

	dir, err := ensureBuilt(ctx, progress, build{
		name:     "kube",
		what:     "kube-apiserver, kube-controller-manager, kubectl and etcd " + KubernetesVersion + " (about 5 minutes, once)",
		module:   module,
		ldflags:  kubernetesLDFlags(),
		packages: toolPackages(),
		rename:   map[string]string{"server": "etcd"},
		programs: []string{"kube-apiserver", "kube-controller-manager", "kubectl", "etcd"},
	})
	if err != nil {
		return Tools{}, err
	}

	return Tools{
		KubeAPIServer:         filepath.Join(dir, "kube-apiserver"),
		KubeControllerManager: filepath.Join(dir, "kube-controller-manager"),
		Kubectl:               filepath.Join(dir, "kubectl"),
		Etcd:                  filepath.Join(dir, "etcd"),
	}, nil
}

// kubernetesLDFlags stamps the version and leaves out the symbol tables, which are a third
// of each program.
func kubernetesLDFlags() string {
	const variable = " -X k8s.io/component-base/version."

	return "-s -w" + variable + "gitVersion=" + KubernetesVersion + variable + "gitMajor=1" + variable + "gitMinor=37" +
		variable + "gitTreeState=clean"
}
