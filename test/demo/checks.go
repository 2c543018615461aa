package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ready checks that kubectl wait would be satisfied at once, for the current generation.
func (d *demo) ready(args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := d.quiet(ctx, "", append([]string{"wait", "--for=condition=Ready", "--timeout=1s"}, args...)...)

		return err
	}
}

// shows checks that an object shows a text at a JSON path.
func (d *demo) shows(object, path, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := d.quiet(ctx, "", "get", object, "-o", "jsonpath="+path)
		if err == nil && strings.TrimSpace(out) != want {
			err = fmt.Errorf("%s shows %q, not %q", path, out, want)
		}

		return err
	}
}

// gone checks that an object does not exist.
func (d *demo) gone(object string) func(context.Context) error {
	return func(ctx context.Context) error {
		out, err := d.quiet(ctx, "", "get", object, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("%s exists", object)
		}

		return err
	}
}

// copied checks that the Secret in the workload cluster holds what its source holds.
func (d *demo) copied(ctx context.Context) error {
	const data = "jsonpath={.data}"

	source, err := d.quiet(ctx, "", "get", "secret", sourceSecret, "-o", data)
	if err != nil {
		return err
	}

	found, _, err := d.workload.hub.Kubectl(ctx, "get", "secret", sourceSecret, "-n", apps, "-o", data)
	if err == nil && found != source {
		err = errors.New("the copy differs from its source")
	}

	return err
}

// omniHas checks the number of machines of a set, in Omni itself.
func (d *demo) omniHas(set string, machines int) func(context.Context) error {
	return func(context.Context) error {
		view, err := d.omni.View("cluster-01")
		if err == nil && view.Machines["cluster-01-"+set] != machines {
			err = fmt.Errorf("Omni has %v", view.Machines)
		}

		return err
	}
}

// askOmni prints what Omni itself has, past everything of ours.
func (d *demo) askOmni() error {
	view, err := d.omni.View("cluster-01")
	if err != nil {
		return err
	}

	d.say("  Omni itself says: cluster-01 is %s with Kubernetes %s; machines: %v", view.Phase, view.KubernetesVersion, view.Machines)

	return nil
}
