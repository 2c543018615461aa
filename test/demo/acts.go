package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// act is one step of the demonstration, explained in one line.
type act struct {
	says  string
	plays func(context.Context) error
}

func (d *demo) acts() []act {
	return []act{
		{"A connection: where Omni is, and the Secret with the service account key.", d.connect},
		{"A cluster: one OmniCluster, its control plane, two worker sets and the settings of one machine.", d.createCluster},
		{"Scaling works with kubectl scale, because a worker set has the scale subresource.", d.scale},
		{"The template subresource shows the exact Omni template that the objects give now.", d.showTemplate},
		{"A suspended edit shows its plan and changes nothing in Omni.", d.stageEdit},
		{"Without suspend the same edit is applied.", d.resume},
		{"A kubeconfig for automation: an OmniKubeconfigExport keeps it in a Secret and renews it in time.", d.export},
		{"The kubeconfig leads to cluster-01 through Omni's proxy. What its group may do there, RBAC there says.", d.grant},
		{"An OmniSecretSync copies a Secret into cluster-01, with that kubeconfig.", d.sync},
		{"An OmniHelmRelease installs a chart in cluster-01, with that kubeconfig too.", d.install},
		{"Other values are an upgrade: Helm's next revision.", d.upgrade},
		{"A new kubeconfig, here because its ttl changes: the sync goes on with it, and Helm has nothing to do.", d.rotate},
		{"Deleting release, sync and export takes along what they made.", d.withdraw},
		{"One change raises the version of three clusters; an OmniRolloutPolicy lets the canary take it first.", d.rollOut},
		{"Deleting the OmniCluster removes the cluster from Omni, and only then the object.", d.deleteCluster},
	}
}

// connect makes the Secret and the connection.
func (d *demo) connect(ctx context.Context) error {
	// The key is not shown, as nobody should show theirs.
	d.say(`$ kubectl create secret generic omni-service-account --from-literal=serviceAccountKey="$OMNI_SERVICE_ACCOUNT_KEY"`)

	if _, err := d.quiet(ctx, "", "create", "secret", "generic", "omni-service-account", "--from-literal=serviceAccountKey="+d.key); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "annotate", "secret", "omni-service-account", v1alpha1.AnnotationAllowedEndpoints+"="+d.omni.Endpoint()); err != nil {
		return err
	}

	path, err := d.writeConnection()
	if err != nil {
		return err
	}

	d.say("  (%s is artifacts/examples/connection.yaml with the endpoint and the caBundle of this Omni.)", filepath.Base(path))

	if _, err := d.kubectl(ctx, "apply", "-f", path); err != nil {
		return err
	}

	if err := d.until(ctx, "the connection is Ready", d.ready("oconn/omni")); err != nil {
		return err
	}

	_, err = d.kubectl(ctx, "get", "oconn")

	return err
}

// writeConnection writes the example with the address and certificates of this Omni.
func (d *demo) writeConnection() (string, error) {
	return d.adapt("connection.yaml", "OmniConnection", func(spec map[string]any) {
		spec["endpoint"] = d.omni.Endpoint()
		spec["caBundle"] = base64.StdEncoding.EncodeToString(d.omni.CAPEM())
	})
}

func (d *demo) createCluster(ctx context.Context) error {
	for _, file := range clusterExamples {
		if _, err := d.kubectl(ctx, "apply", "-f", filepath.Join(d.dir, file)); err != nil {
			return err
		}
	}

	if err := d.until(ctx, "the cluster runs in Omni and is Ready", d.ready("ocl/cluster-01")); err != nil {
		return err
	}

	if err := d.until(ctx, "so are its documents", d.ready("ocp,ow,om", "--all")); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "omni"); err != nil {
		return err
	}

	return d.askOmni()
}

func (d *demo) scale(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "scale", "omniworkers/"+classWorkers, "--replicas=3"); err != nil {
		return err
	}

	if err := d.until(ctx, "Omni has three machines in the set", d.omniHas(classWorkers, 3)); err != nil {
		return err
	}

	if err := d.until(ctx, "the set is Ready", d.ready("ow/"+classWorkers)); err != nil {
		return err
	}

	_, err := d.kubectl(ctx, "get", "ow")

	return err
}

func (d *demo) showTemplate(ctx context.Context) error {
	_, err := d.kubectl(ctx, "get", "--raw", "/apis/omni.texashpc.com/v1alpha1/namespaces/"+namespace+"/omniclusters/cluster-01/template")

	return err
}

func (d *demo) stageEdit(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "patch", "ocl", "cluster-01", "--type=merge", "-p", `{"spec":{"suspend":true}}`); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "scale", "omniworkers/"+classWorkers, "--replicas=1"); err != nil {
		return err
	}

	if err := d.until(ctx, "the plan is there", d.shows("ocl/cluster-01", "{.status.plan.updates} {.status.conditions[?(@.type=='Suspended')].status}", "1 True")); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "ocl", "-o", "wide"); err != nil {
		return err
	}

	if _, err := d.kubectl(ctx, "get", "ocl", "cluster-01", "-o", "jsonpath={.status.plan}"); err != nil {
		return err
	}

	if err := d.omniHas(classWorkers, 3)(ctx); err != nil {
		return fmt.Errorf("a suspended edit reached Omni: %w", err)
	}

	return d.askOmni()
}

func (d *demo) resume(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "patch", "ocl", "cluster-01", "--type=merge", "-p", `{"spec":{"suspend":false}}`); err != nil {
		return err
	}

	d.say("  (Two machines leave: a change that destroys waits for the settle time, here 2 s.)")

	if err := d.until(ctx, "Omni has one machine in the set", d.omniHas(classWorkers, 1)); err != nil {
		return err
	}

	return d.until(ctx, "the cluster is Ready again", d.ready("ocl/cluster-01"))
}

func (d *demo) deleteCluster(ctx context.Context) error {
	if _, err := d.kubectl(ctx, "delete", "ocl", "cluster-01", "--timeout=60s"); err != nil {
		return err
	}

	if view, err := d.omni.View("cluster-01"); err != nil || view.Exists {
		return fmt.Errorf("Omni still has the cluster: %+v %w", view, err)
	}

	d.say("  -> Omni no longer has the cluster")

	if _, err := d.kubectl(ctx, "delete", "ocp,ow,om,oconn", "--all"); err != nil {
		return err
	}

	_, err := d.kubectl(ctx, "get", "omni")

	return err
}
