package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

// rolloutManifest is a policy and three clusters. Git would have them; a pipe stands for a commit here.
//
//go:embed rollout.yaml
var rolloutManifest string

// rolloutMachines are the machines that it names, and rolloutClusters its clusters.
var (
	rolloutMachines = [...]string{
		"1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1c01", "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1c02", "1c3f5d1e-0d59-4d0c-9f0a-6a5c0f6f1c03",
	}
	rolloutClusters = [...]string{"canary", "prod-a", "prod-b"}
)

// rollOut raises the version of three clusters at once, and lets the policy decide who takes it when.
func (d *demo) rollOut(ctx context.Context) error {
	if err := d.pipe(ctx, "cat rollout.yaml", rolloutManifest); err != nil {
		return err
	}

	if err := d.until(ctx, "three clusters and their policy are Ready", d.ready("ocl/canary", "ocl/prod-a", "ocl/prod-b", "orp/fleet")); err != nil {
		return err
	}

	if err := d.pipe(ctx, "sed s/v1.35.1/v1.36.1/ rollout.yaml", strings.ReplaceAll(rolloutManifest, "v1.35.1", "v1.36.1")); err != nil {
		return err
	}

	if err := d.until(ctx, "production waits for the canary", d.shows("ocl/prod-a", "{.status.conditions[?(@.type=='Held')].reason}", "WaitingForStage")); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "orp"); err != nil {
		return err
	}

	d.say("  (A cluster's turn is over when it was Ready for a time, a minute by default and here 2 s.)")

	for _, name := range rolloutClusters {
		if err := d.until(ctx, name+" has done its turn", d.shows("ocl/"+name, "{.status.rollout.last.result}", "Done")); err != nil {
			return err
		}
	}

	if err := d.inOrder(); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "ocl"); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "delete", "ocl", "canary", "prod-a", "prod-b", "--timeout=60s"); err != nil {
		return err
	}

	_, err := d.kubectl(ctx, "delete", "orp", "fleet")

	return err
}

// pipe applies what a command would print.
func (d *demo) pipe(ctx context.Context, command, text string) error {
	d.say("$ %s | kubectl apply -f -", command)

	_, err := d.show(d.stack.KubectlInput(ctx, strings.NewReader(text), "-n", namespace, "apply", "-f", "-"))

	return err
}

// inOrder checks by Omni's own account that the canary was first.
func (d *demo) inOrder() error {
	var updated []string

	for _, write := range d.omni.Writes() {
		if write.Verb == "Update" && write.Type == "Clusters.omni.sidero.dev" && write.ID != exampleCluster {
			updated = append(updated, write.ID)
		}
	}

	if len(updated) != len(rolloutClusters) || updated[0] != "canary" {
		return fmt.Errorf("Omni took the versions in the order %v", updated)
	}

	if updated[1] == updated[2] {
		return errors.New("one cluster was upgraded twice")
	}

	return nil
}
