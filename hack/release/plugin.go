package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// krewFile is the manifest of the plugin for krew, the package manager of kubectl's plugins. It has to have the plugin's
// name: kubectl omni.
const krewFile = "omni.yaml"

// buildPlugin writes the archives of the plugin, and the manifest by which krew installs it.
func (r *release) buildPlugin(ctx context.Context, out string, compile compiler) error {
	for _, p := range pluginPlatforms {
		programs, err := compile(ctx, p, plugin)
		if err != nil {
			return err
		}

		if err := r.writeArchive(out, plugin.name, p, programs); err != nil {
			return err
		}
	}

	manifest, err := r.krewManifest(out)
	if err != nil {
		return err
	}

	content, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}

	return os.WriteFile(filepath.Join(out, krewFile), content, 0o644)
}

// krewManifest describes the archives that are in a directory. Its form is that of
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
func (r *release) krewManifest(out string) (map[string]any, error) {
	var found []any

	for _, p := range pluginPlatforms {
		archive := r.archiveFile(plugin.name, p)

		content, err := os.ReadFile(filepath.Join(out, archive))
		if err != nil {
			return nil, err
		}

		found = append(found, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      r.downloads + "/" + r.version + "/" + archive,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(content)),
			"bin":      plugin.file(p),
			"files":    []any{map[string]any{"from": plugin.file(p), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}

	return map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "omni"},
		"spec": map[string]any{
			"version":          r.version,
			"homepage":         "https://omni.texashpc.com",
			"shortDescription": "Look at Sidero Omni clusters and decide",
			"description": "Shows what belongs to an OmniCluster, how it is and what it waits for, and does what\n" +
				"waits for a person: approvals, rollouts, suspension. It needs omni-cluster-operator in\n" +
				"the management cluster, and uses your own rights there.\n",
			"caveats":   "To log in with what `kubectl omni kubeconfig` prints, install kubelogin:\n  kubectl krew install oidc-login\n",
			"platforms": found,
		},
	}, nil
}
