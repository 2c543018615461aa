package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

// What the examples name, and Omni has to have.
var exampleMachines = [...]string{"1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1a01", "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1b01"}

const (
	exampleClass   = "general"
	exampleCluster = "cluster-01"
	classWorkers   = "cluster-01-workers"
)

// clusterExamples are the manifests of one cluster.
var clusterExamples = [...]string{"cluster.yaml", "controlplane.yaml", "workers-static.yaml", "workers-class.yaml", "machine.yaml"}

// Manifests that reach into the workload cluster.
const (
	exportExample  = "kubeconfig-export.yaml"
	syncExample    = "secret-sync.yaml"
	releaseExample = "helm-release.yaml"
)

// examples is the directory of the example manifests as a user would type it: from the working
// directory, if there is such a path.
func examples() (string, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return "", err
	}

	dir := filepath.Join(root, "artifacts", "examples")

	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find examples: %w", err)
	}

	if relative, err := filepath.Rel(working, dir); err == nil {
		return relative, nil
	}

	return dir, nil
}

// adapt writes an example, with a spec that fits this machine, into the stack's directory, where a
// user of "make up" finds it too. The object in question is the file's only one of that kind.
func (d *demo) adapt(file, kind string, edit func(spec map[string]any)) (string, error) {
	data, err := os.ReadFile(filepath.Join(d.dir, file))
	if err != nil {
		return "", fmt.Errorf("read example: %w", err)
	}

	manifest, err := adapted(data, kind, edit)
	if err != nil {
		return "", fmt.Errorf("adapt example %s: %w", file, err)
	}

	path := filepath.Join(d.stack.Dir, file)
	if err := os.WriteFile(path, manifest, 0o600); err != nil {
		return "", fmt.Errorf("write adapted example: %w", err)
	}

	return path, nil
}

// adapted returns the first object of a kind with its spec edited.
func adapted(data []byte, kind string, edit func(spec map[string]any)) ([]byte, error) {
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, err
		}

		if spec, ok := object["spec"].(map[string]any); ok && object["kind"] == kind {
			edit(spec)

			return yaml.Marshal(object)
		}
	}

	return nil, fmt.Errorf("it has no %s", kind)
}

// files are the arguments that apply manifests of a directory.
func files(dir string, names ...string) string {
	var arguments strings.Builder
	for _, name := range names {
		arguments.WriteString(" -f " + filepath.Join(dir, name))
	}

	return arguments.String()
}
