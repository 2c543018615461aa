package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// What the examples of deliveries name.
const (
	sourceSecret = "registry-credentials"
	syncName     = "cluster-01-registry"
	releaseName  = "cluster-01-podinfo"
	configMap    = "podinfo"
)

// sync copies the credentials of a registry.
func (d *demo) sync(ctx context.Context) error {
	if err := d.createSource(ctx); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "apply", "-f", filepath.Join(d.dir, syncExample)); err != nil {
		return err
	}

	if err := d.until(ctx, "the copy is there", d.ready("oss/"+syncName)); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "oss"); err != nil {
		return err
	}

	if _, err := d.inside(ctx, d.admin(), "get", "secrets", "-n", apps); err != nil {
		return err
	}

	return d.copied(ctx)
}

// createSource makes the Secret to copy. Its password is not shown, as nobody should show theirs.
func (d *demo) createSource(ctx context.Context) error {
	create := []string{"create", "secret", "docker-registry", sourceSecret, "--docker-server=registry.example.com", "--docker-username=robot"}
	d.say(`$ kubectl %s --docker-password="$REGISTRY_PASSWORD"`, commandLine(create))

	_, err := d.quiet(ctx, "", append(create, "--docker-password=first")...)

	return err
}

// install installs the chart.
func (d *demo) install(ctx context.Context) error {
	path, err := d.writeRelease()
	if err != nil {
		return err
	}

	d.say("  (%s is artifacts/examples/%s with a chart repository of this machine, without TLS: hence the warning.", filepath.Base(path), releaseExample)
	d.say("  The chart is a small stand-in of that name: %s has no nodes here, so it makes a ConfigMap instead of pods.)", exampleCluster)

	if _, err := d.kubectl(ctx, "apply", "-f", path); err != nil {
		return err
	}

	if err := d.until(ctx, "the release is installed", d.ready("ohr/"+releaseName)); err != nil {
		return err
	}

	return d.showRelease(ctx, "1", "Hello from the management cluster")
}

// upgrade changes a value.
func (d *demo) upgrade(ctx context.Context) error {
	const message = "Servus"

	patch := fmt.Sprintf(`{"spec":{"chart":{"values":{"ui":{"message":%q}}}}}`, message)
	if _, err := d.kubectl(ctx, "patch", "ohr", releaseName, "--type=merge", "-p", patch); err != nil {
		return err
	}

	if err := d.until(ctx, "the release is upgraded", d.ready("ohr/"+releaseName)); err != nil {
		return err
	}

	return d.showRelease(ctx, "2", message)
}

// showRelease shows the release from both sides, and checks it.
func (d *demo) showRelease(ctx context.Context, revision, message string) error {
	if _, err := d.kubectl(ctx, "get", "ohr"); err != nil {
		return err
	}

	out, err := d.inside(ctx, d.admin(), "get", "configmap", configMap, "-n", apps, "-o", "jsonpath={.data.message}")
	if err == nil && out != message {
		err = fmt.Errorf("the ConfigMap says %q, not %q", out, message)
	}

	if err != nil {
		return err
	}

	return d.shows("ohr/"+releaseName, "{.status.revision} {.status.releaseStatus}", revision+" deployed")(ctx)
}

// rotate makes a new kubeconfig and shows that the work goes on with it.
func (d *demo) rotate(ctx context.Context) error {
	former, err := d.kubeconfig(ctx)
	if err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "patch", "oke", exportName, "--type=merge", "-p", `{"spec":{"ttl":"12h"}}`); err != nil {
		return err
	}

	if err := d.until(ctx, "the Secret holds a new kubeconfig", func(ctx context.Context) error {
		current, err := d.kubeconfig(ctx)
		if err == nil && bytes.Equal(current, former) {
			err = errors.New("it is the former one")
		}

		return err
	}); err != nil {
		return err
	}

	// Release and sync read the Secret anew for whatever they do next.
	patch := `{"stringData":{".dockerconfigjson":"{\"auths\":{\"registry.example.com\":{\"username\":\"robot\",\"password\":\"second\"}}}"}}`
	if _, err := d.kubectl(ctx, "patch", "secret", sourceSecret, "-p", patch); err != nil {
		return err
	}

	if err := d.until(ctx, "the copy has the new password", d.copied); err != nil {
		return err
	}

	return d.lookAgain(ctx)
}

// lookAgain asks for another look at release and sync, and checks that Helm had nothing to do.
func (d *demo) lookAgain(ctx context.Context) error {
	const request = "omni.texashpc.com/reconcile-requested-at"
	if _, err := d.kubectl(ctx, "annotate", "ohr/"+releaseName, "oss/"+syncName, request+"=after-rotation"); err != nil {
		return err
	}

	for _, object := range []string{"oss/" + syncName, "ohr/" + releaseName} {
		handled := d.shows(object, "{.status.lastHandledReconcileAt}", "after-rotation")
		if err := d.until(ctx, object+" was looked at again", handled); err != nil {
			return err
		}
	}

	if err := d.until(ctx, "export, sync and release are Ready", d.ready("oke,oss,ohr", "--all")); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "oke,oss,ohr"); err != nil {
		return err
	}

	return d.shows("ohr/"+releaseName, "{.status.revision} {.status.releaseStatus}", "2 deployed")(ctx)
}

// withdraw deletes what reaches into the workload cluster.
func (d *demo) withdraw(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "delete", "ohr,oss", "--all", "--timeout=60s"); err != nil {
		return err
	}

	left, err := d.inside(ctx, d.admin(), "get", "secrets,configmaps", "-n", apps, "-o", "name")
	if ours := strings.TrimSpace(strings.Replace(left, "configmap/kube-root-ca.crt", "", 1)); err == nil && ours != "" {
		err = fmt.Errorf("left behind: %s", ours)
	}

	if err != nil {
		return err
	}

	d.say("  -> only Kubernetes' own ConfigMap is left: the chart is uninstalled, the copy is removed")

	if _, err := d.kubectl(ctx, "delete", "oke", exportName, "--timeout=60s"); err != nil {
		return err
	}

	return d.until(ctx, "the Secret with the kubeconfig is gone", d.gone("secret/"+kubeconfigSecret))
}
