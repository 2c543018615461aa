package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/client-go/discovery"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// rendered is the function that the templates of a prerendered chart consist of.
const rendered = "rendered"

// noValue is what Helm takes out of what templates print, once.
const noValue = "<no value>"

// prepare has the chart rendered by a worker, installs its CRDs before if that is
// wanted, and returns what Helm is given instead of the chart: a chart whose
// templates have the same names and print the worker's text. Nothing is rendered
// twice, and nothing of the chart itself is executed or parsed unbounded here. The
// release needs a number only.
func (c *Client) prepare(x *execution, release render.Release, crds bool) (*chart.Chart, error) {
	encoded, err := x.request.Values.Encode()
	if err != nil {
		return nil, err
	}

	release.Name, release.Namespace = c.target.Name, c.target.Namespace
	job := render.Job{Values: encoded, Release: release, CRDsFirst: crds}

	one, err := c.render(x, job)
	if err == nil && !one.answer.Rendered {
		if err := c.installCRDs(x, one.answer.CRDs); err != nil {
			return nil, err
		}

		job.CRDsFirst = false
		one, err = c.render(x, job)
	}

	if err != nil {
		return nil, err
	}

	answer, files := one.answer, one.files

	if len(answer.Unchecked) > 0 {
		c.log.Info("values are not checked against schemas that are broken or refer to something outside the chart", "release", c.target.Name, "charts", brief(answer.Unchecked))
	}

	if err := c.checkManifests(x.soft, x.request, files, one.found); err != nil {
		return nil, err
	}

	prerendered, functions := prerenderedChart(answer.Chart, files)
	x.config.CustomTemplateFuncs = functions
	x.storage.prerendered, x.storage.original, x.storage.unchecked = prerendered, answer.Chart, len(answer.Unchecked) > 0

	return prerendered, nil
}

// maxBrief is how many names of a chart a line of the log has.
const maxBrief = 10

// brief is a list of names that a chart chooses, for the log.
func brief(names []string) string {
	first := redact.Line(strings.Join(names[:min(maxBrief, len(names))], ", "))

	return words.AndMore(first, len(names)-maxBrief, ", ")
}

// prerenderedChart makes a chart with a template for each rendered file, which prints its
// text with the function that comes with it.
func prerenderedChart(original *chart.Chart, files map[string]string) (*chart.Chart, template.FuncMap) {
	prerendered := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: original.Name(), Version: original.Metadata.Version}}

	for _, name := range slices.Sorted(maps.Keys(files)) {
		prerendered.Templates = append(prerendered.Templates, &common.File{
			Name: strings.TrimPrefix(name, original.Name()+"/"), Data: []byte("{{ " + rendered + " .Template.Name }}"),
		})
	}

	return prerendered, template.FuncMap{rendered: func(name string) (string, error) {
		text, known := files[name]
		if !known {
			return "", fmt.Errorf("%s was not rendered", name)
		}

		return text, nil
	}}
}

// renderedChart is what a worker made of a chart.
type renderedChart struct {
	answer *render.Answer
	files  map[string]string
	found  manifests
}

// reserveMemory takes memory for what a worker answers, in the worker's place. If there is none, the action begins again when there
// is, so that what waits keeps no worker.
func (c *Client) reserveMemory(x *execution, one *renderedChart) error {
	one.found = checkOutput(x.soft, one.files)
	cost := costOf(one.answer.Size(), answerCopies) + costOf(one.found.size, manifestCopies)

	if len(one.answer.CRDs) > 0 {
		size, _, err := drift.CheckManifests(x.soft, crdTexts(one.answer.CRDs))
		if err != nil {
			return nil // it is refused before it is used
		}

		cost += costOf(size, manifestCopies)
	}

	return x.memory.take(renderedOutput, cost)
}

// render asks a worker, for the cluster as it is now.
func (c *Client) render(x *execution, job render.Job) (*renderedChart, error) {
	if c.target.Renderers == nil || x.request.Chart == nil {
		return nil, errors.New("there is no chart, or nothing that renders it")
	}

	capabilities, err := lookAtCluster(x)
	if err != nil {
		return nil, err
	}

	job.Cluster = render.Cluster{
		Version: capabilities.KubeVersion.Version, Major: capabilities.KubeVersion.Major, Minor: capabilities.KubeVersion.Minor,
		APIVersions: capabilities.APIVersions,
	}

	lookup, err := kubeclient.NewLookup(x.soft, c.target.Config, x.config.RESTClientGetter)
	if err != nil {
		return nil, err
	}

	one := &renderedChart{}
	job.Admit = func(answer *render.Answer, files map[string]string) error {
		one.answer, one.files = answer, files

		return c.reserveMemory(x, one)
	}

	archive, err := archiveOf(x.soft, x.request.Chart)
	if err != nil {
		return nil, err
	}

	if err := x.memory.take(packedChart, int64(len(archive))); err != nil {
		return nil, err
	}

	defer x.memory.forget(packedChart) // it is had again, usually from a cache, when it is rendered again

	if _, _, err := c.target.Renderers.Render(x.soft, c.target.Tenant, job, archive, lookup); err != nil {
		return nil, explainRendering(x.request.Chart, err)
	}

	if err := x.request.Chart.Accept(one.answer.Chart.Metadata); err != nil {
		return nil, &unusableError{err}
	}

	return one, nil
}

// archiveOf has a packed chart. Who made the request knows what to say if it cannot be had.
func archiveOf(ctx context.Context, packed Chart) ([]byte, error) {
	archive, err := packed.Archive(ctx)

	switch {
	case err == nil:
		return archive, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("chart %s: %w", packed, ctx.Err())
	default:
		return nil, &unusableError{err}
	}
}

// lookAtCluster finds out what the cluster is able to do, as Helm does it. Helm
// itself does not ask again then.
func lookAtCluster(x *execution) (*common.Capabilities, error) {
	client, err := x.config.RESTClientGetter.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}

	client.Invalidate()

	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("cluster reachability check failed: %w", err)
	}

	versions, err := action.GetVersionSet(client)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}

	slices.Sort(versions) // Helm has them from a map, and a chart may print them

	x.config.Capabilities = &common.Capabilities{
		APIVersions: versions,
		KubeVersion: common.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		HelmVersion: common.DefaultCapabilities.HelmVersion,
	}

	return x.config.Capabilities, nil
}

// explainRendering says why a chart was not rendered.
func explainRendering(packed Chart, err error) error {
	var (
		failure *render.Failure
		refusal *render.RefusedError
	)

	switch {
	case errors.As(err, &refusal):
		return outOfBounds("chart "+packed.String(), refusal)
	case errors.Is(err, render.ErrUnavailable):
		return &Error{Reason: ReasonUnavailable, Message: fmt.Sprintf("chart %s: %s", packed, err)}
	case !errors.As(err, &failure):
		return fmt.Errorf("chart %s: %w", packed, err)
	case failure.Stage == render.StageUnpack:
		return &unusableError{packed.Invalid("cannot be unpacked: " + failure.Text)}
	case failure.Stage == render.StageLoad:
		return &unusableError{packed.Invalid("cannot be read: " + failure.Text)}
	default:
		return failure
	}
}
