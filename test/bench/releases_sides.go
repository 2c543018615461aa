package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// Users in the workload clusters, by which their audit logs tell the sides apart.
	ourReleaser, fluxReleaser = "bench-ours", "bench-flux"
	// releasesController is the omni-controller that serves the releases' namespace: the one of the
	// fleet has the fleet in its memory.
	releasesController = "omni-controller-releases"
	// fluxWorkers is how many objects each of Flux's controllers looks at at once, as many as ours
	// does by default.
	fluxWorkers = "8"
)

// releaseSide is one of the two sides: ours, or Flux's.
type releaseSide struct {
	name      string // in the report
	user      string // in the workload clusters
	resource  schema.GroupVersionResource
	namespace string // of its objects in the hub
	target    string // namespace in every workload cluster
	manifest  func(wantedRelease) map[string]any
	processes []string // the installing one first
	restart   func(context.Context) error
	stop      func() error

	charts  *chartserver.Repository
	watched *readiness
}

// releaseBench is part (g): the stack, workload clusters, and both sides.
type releaseBench struct {
	*bench

	workloads []*env.Hub
	sides     []*releaseSide // ours first
}

// startReleaseBench starts what part (g) needs besides the stack. Flux is built if it never was.
func (b *bench) startReleaseBench(ctx context.Context) (*releaseBench, error) {
	r := &releaseBench{bench: b}

	for _, step := range []func(context.Context) error{r.startWorkloads, r.startOurs, r.startFlux, r.createObjects} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}

	return r, nil
}

// startWorkloads starts the control planes, one after the other: together they only wait for the
// same cores.
func (r *releaseBench) startWorkloads(ctx context.Context) error {
	policy := r.file("workload-audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(workloadAuditPolicy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}

	for i := range r.settings.Workloads {
		dir := r.file(workloadName(i))

		hub, err := env.StartHub(ctx, env.Options{
			Dir: dir, Progress: os.Stderr, DurableEtcd: r.settings.HubFsync, AsDeployed: true,
			KubeAPIServerArgs: []string{
				"--audit-policy-file=" + policy,
				"--audit-log-path=" + auditLogOf(dir),
				"--audit-log-maxsize=" + auditMegabytes,
			},
		})
		if err != nil {
			return fmt.Errorf("start %s: %w", workloadName(i), err)
		}

		r.workloads = append(r.workloads, hub)
	}

	return nil
}

func auditLogOf(dir string) string { return filepath.Join(dir, "audit.log") }

// startOurs starts an omni-controller for the releases alone.
func (r *releaseBench) startOurs(ctx context.Context) error {
	if err := r.stack.CreateNamespace(ctx, releasesNamespace); err != nil {
		return err
	}

	controller, err := r.stack.StartController(ctx, env.ControllerOptions{
		Binary: r.stack.Controller.BinaryPath(), Name: releasesController, Namespace: releasesNamespace,
	})
	if err != nil {
		return err
	}

	return r.addSide(ctx, &releaseSide{
		name: sideOurs, user: ourReleaser, resource: ourReleases(), namespace: releasesNamespace, target: "ours",
		manifest: ourRelease, processes: []string{releasesController},
		restart: controller.Restart, stop: controller.Stop,
	})
}

// startFlux starts source-controller and helm-controller.
func (r *releaseBench) startFlux(ctx context.Context) error {
	flux, err := r.stack.StartFlux(ctx, env.FluxOptions{
		Components: []env.FluxComponent{env.FluxSourceController, env.FluxHelmController},
		Args: map[env.FluxComponent][]string{
			env.FluxSourceController: {"--concurrent=" + fluxWorkers},
			env.FluxHelmController:   {"--concurrent=" + fluxWorkers},
		},
	})
	if err != nil {
		return err
	}

	source, helm := flux[env.FluxSourceController], flux[env.FluxHelmController]

	return r.addSide(ctx, &releaseSide{
		name: sideFlux, user: fluxReleaser, resource: fluxReleases(), namespace: env.FluxNamespace, target: "flux",
		manifest: fluxRelease, processes: []string{string(env.FluxHelmController), string(env.FluxSourceController)},
		restart: func(ctx context.Context) error { return errors.Join(source.Restart(ctx), helm.Restart(ctx)) },
		stop:    func() error { return errors.Join(helm.Stop(), source.Stop()) },
	})
}

// addSide adds a side: with a chart repository of its own, so that its downloads are told apart, and
// a watch of its releases.
func (r *releaseBench) addSide(ctx context.Context, c *releaseSide) error {
	c.charts = chartserver.StartRepository()
	c.charts.Add(chartserver.ConfigMapChart(benchChart, benchChartVersion))
	r.sides = append(r.sides, c)

	client, err := dynamic.NewForConfig(r.stack.RESTConfig())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}

	c.watched, err = watchReadiness(ctx, client, c.resource, c.namespace)

	return err
}

// createObjects makes what the releases of both sides refer to.
func (r *releaseBench) createObjects(ctx context.Context) error {
	for i, hub := range r.workloads {
		for _, c := range r.sides {
			if err := hub.CreateNamespace(ctx, c.target); err != nil {
				return err
			}

			if err := r.giveKubeconfig(ctx, c, hub, workloadName(i)); err != nil {
				return err
			}
		}

		if err := r.create(ctx, ourPath(releasesNamespace, "omniclusters"), restingCluster(workloadName(i))); err != nil {
			return err
		}
	}

	repository := fluxRepository(r.sides[1].charts.URL(), r.settings.ReleaseInterval)

	return r.create(ctx, objectsPath(fluxRepositories(), env.FluxNamespace), repository)
}

// giveKubeconfig writes a kubeconfig of a cluster's administrator for a side. Both have all rights.
func (r *releaseBench) giveKubeconfig(ctx context.Context, c *releaseSide, hub *env.Hub, name string) error {
	path, err := hub.KubeconfigFor(c.user, "system:masters")
	if err != nil {
		return err
	}

	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}

	return r.create(ctx, "/api/v1/namespaces/"+c.namespace+"/secrets", kubeconfigSecret(name, string(content)))
}

// create makes an object. That the chart repository has no TLS is meant, and no warning is shown.
func (r *releaseBench) create(ctx context.Context, path string, object map[string]any) error {
	request := r.admin.Post().AbsPath(path).WarningHandler(rest.NoWarnings{}).Body(encode(object))
	if err := request.SetHeader("Content-Type", "application/json").Do(ctx).Error(); err != nil {
		return fmt.Errorf("create at %s: %w", path, err)
	}

	return nil
}

// close stops what startReleaseBench has started, so that later parts have the machine for themselves.
func (r *releaseBench) close() error {
	var errs []error

	for _, c := range r.sides {
		if c.watched != nil {
			c.watched.cancel()
		}

		errs = append(errs, c.stop())
		c.charts.Close()
	}

	return errors.Join(append(errs, r.stopWorkloads())...)
}

// stopWorkloads stops all at once: each takes seconds.
func (r *releaseBench) stopWorkloads() error {
	errs := make([]error, len(r.workloads))

	var stopping sync.WaitGroup

	for i, hub := range r.workloads {
		stopping.Go(func() { errs[i] = hub.Stop() })
	}

	stopping.Wait()

	return errors.Join(errs...)
}
