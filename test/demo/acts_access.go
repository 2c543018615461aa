package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What the examples of the workload cluster name.
const (
	exportName       = "cluster-01-automation"
	kubeconfigSecret = "cluster-01-automation-kubeconfig"
	automationGroup  = "cluster-automation"
	apps             = "apps"
)

// export makes the kubeconfig and stores it in a file.
func (d *demo) export(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "apply", "-f", filepath.Join(d.dir, exportExample)); err != nil {
		return err
	}

	if err := d.until(ctx, "the kubeconfig is in its Secret", d.ready("oke/"+exportName)); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "oke", "-o", "wide"); err != nil {
		return err
	}

	exported := d.exported()
	d.say("$ %s=%s", exported.name, exported.path)
	d.say("$ kubectl get secret %s -o jsonpath='{.data.kubeconfig}' | base64 -d > $%s", kubeconfigSecret, exported.name)

	kubeconfig, err := d.kubeconfig(ctx)
	if err != nil {
		return err
	}

	if err := os.WriteFile(exported.path, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}

	return nil
}

// kubeconfig reads the exported one.
func (d *demo) kubeconfig(ctx context.Context) ([]byte, error) {
	encoded, err := d.quiet(ctx, "", "get", "secret", kubeconfigSecret, "-o", "jsonpath={.data.kubeconfig}")
	if err != nil {
		return nil, err
	}

	return base64.StdEncoding.DecodeString(encoded)
}

// grant binds the group in the workload cluster, and shows the difference.
func (d *demo) grant(ctx context.Context) error {
	if err := d.workload.await(ctx); err != nil {
		return fmt.Errorf("start the Kubernetes of %s: %w", exampleCluster, err)
	}

	exported := d.exported()

	out, err := d.inside(ctx, exported, "auth", "whoami")
	if err != nil {
		return err
	}

	if !strings.Contains(out, automationGroup) {
		return errors.New("the workload cluster does not see the group of the export")
	}

	if out, err := d.inside(ctx, exported, "get", "secrets", "-n", apps); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		return fmt.Errorf("without a binding the group can read Secrets: %s %w", out, err)
	}

	d.say("  (Nobody has bound the group yet. The administrator of %s does it now:)", exampleCluster)
	d.say("$ %s=%s", d.admin().name, d.admin().path)

	for _, args := range accessCommands() {
		if _, err := d.inside(ctx, d.admin(), args...); err != nil {
			return err
		}
	}

	if err := d.until(ctx, "the group may work in the namespace "+apps, d.may("create", "secrets")); err != nil {
		return err
	}

	_, err = d.inside(ctx, exported, "get", "secrets", "-n", apps)

	return err
}

// accessCommands are what an administrator of the workload cluster does for the examples.
func accessCommands() [][]string {
	return [][]string{
		{"create", "namespace", apps},
		{"create", "rolebinding", automationGroup, "--clusterrole=edit", "--group=" + automationGroup, "-n", apps},
	}
}

// may checks what the exported kubeconfig is allowed to do.
func (d *demo) may(verb, resource string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, _, err := d.stack.Kubectl(ctx, "--kubeconfig="+d.exported().path, "auth", "can-i", verb, resource, "-n", apps)

		return err
	}
}
