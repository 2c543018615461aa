package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts/parse"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

type lookupFunc func(apiVersion, kind, namespace, name string) (map[string]any, error)

// renderChart does what Helm's install and upgrade do until they have the text of
// all templates, in their order. It returns that text, too. Errors of the chart are
// *render.Failure.
func renderChart(job *render.Job, packed []byte, lookup lookupFunc) (*render.Answer, []byte, error) {
	if job.Explain != "" {
		return explain(job.Explain, string(packed))
	}

	values, err := render.DecodeValues(job.Values)
	if err != nil {
		return nil, nil, err
	}

	loaded, err := load(packed)
	if err != nil {
		return nil, nil, err
	}

	answer := &render.Answer{Chart: loaded, Unchecked: dropOutsideSchemas(loaded)}

	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, nil, failed("chart dependencies processing failed: %w", err)
	}

	if job.CRDsFirst {
		for _, crd := range loaded.CRDObjects() {
			answer.CRDs = append(answer.CRDs, render.CRD{Name: crd.Name, Data: crd.File.Data})
		}

		if len(answer.CRDs) > 0 {
			return answer, nil, nil
		}
	}

	files, err := execute(job, loaded, values, lookup)
	if err != nil {
		return nil, nil, err
	}

	answer.Rendered = true

	printed, err := join(answer, files)

	return answer, printed, err
}

// load unpacks and reads a chart.
func load(packed []byte) (*chart.Chart, error) {
	files, err := archive.LoadArchiveFiles(bytes.NewReader(packed))
	if err != nil {
		return nil, &render.Failure{Stage: render.StageUnpack, Text: err.Error()}
	}

	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, &render.Failure{Stage: render.StageLoad, Text: err.Error()}
	}

	loaded.Raw = nil // all files once more, which nobody needs

	return loaded, nil
}

// execute executes the templates. It has no deadline of its own: the controller ends the process.
func execute(job *render.Job, loaded *chart.Chart, values map[string]any, lookup lookupFunc) (map[string]string, error) {
	capabilities := &common.Capabilities{
		APIVersions: job.Cluster.APIVersions,
		KubeVersion: common.KubeVersion{Version: job.Cluster.Version, Major: job.Cluster.Major, Minor: job.Cluster.Minor},
		HelmVersion: common.DefaultCapabilities.HelmVersion,
	}
	release := common.ReleaseOptions{
		Name: job.Release.Name, Namespace: job.Release.Namespace, Revision: job.Release.Revision,
		IsInstall: !job.Release.Upgrade, IsUpgrade: job.Release.Upgrade,
	}

	rendered, err := util.ToRenderValuesWithSchemaValidation(loaded, values, release, capabilities, false)
	if err != nil {
		return nil, failed("%w", errors.New(sortViolations(err.Error())))
	}

	if wanted := loaded.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil, failed("%w", fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wanted, capabilities.KubeVersion.Version))
	}

	files, err := (engine.Engine{CustomTemplateFuncs: template.FuncMap{"lookup": lookup}}).RenderWithContext(context.Background(), loaded, rendered)
	if err != nil {
		return nil, failed("%w", err)
	}

	return files, nil
}

// violation is how the text of one violation of a schema begins. What belongs to it is indented.
const violation = "- at "

// sortViolations returns what Helm says of a chart's values with the violations of each schema sorted: Helm lists them in the order of
// a map, another one each time.
func sortViolations(text string) string {
	var sorted, found []string

	end := func() {
		slices.Sort(found)
		sorted, found = append(sorted, found...), nil
	}

	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, violation):
			found = append(found, line)
		case len(found) > 0 && strings.HasPrefix(line, " "):
			found[len(found)-1] += "\n" + line
		default:
			end()

			sorted = append(sorted, line)
		}
	}

	end()

	return strings.Join(sorted, "\n")
}

// join puts the text of all files that are not empty one behind the other, and says
// in the answer where each is.
func join(answer *render.Answer, files map[string]string) ([]byte, error) {
	total := 0
	for _, text := range files {
		total += len(text)
	}

	if total > render.MaxText {
		return nil, tooLarge("its templates print more than %d MiB", render.MaxText)
	}

	var printed bytes.Buffer

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.TrimSpace(files[name]) == "" {
			continue
		}

		answer.Files = append(answer.Files, render.File{Name: name, Bytes: len(files[name])})
		printed.WriteString(files[name])
	}

	return printed.Bytes(), nil
}

func failed(format string, err error) error {
	var failure *render.Failure
	if errors.As(err, &failure) {
		return failure
	}

	return &render.Failure{Stage: render.StageRender, Text: fmt.Errorf(format, err).Error()}
}

// explain parses a rendered text as Helm does.
func explain(name, text string) (*render.Answer, []byte, error) {
	if _, _, err := releaseutil.SortManifests(map[string]string{name: text}, nil, releaseutil.InstallOrder); err != nil {
		return nil, nil, failed("%w", err)
	}

	return &render.Answer{Chart: &chart.Chart{Metadata: &chart.Metadata{}}}, nil, nil
}

// largeText is from how many bytes on the memory for a text is given back at once.
const largeText = 1 << 20

// serveIndex reads the index of a repository.
func (w *worker) serveIndex(text []byte) error {
	if len(text) >= largeText {
		defer debug.FreeOSMemory()
	}

	index, err := readIndex(text)
	if err != nil {
		return w.fail(err)
	}

	if err := index.WriteEntries(func(content []byte) error { return render.WriteFrame(w.out, render.KindEntries, content) }); err != nil {
		return err
	}

	return render.WriteFrame(w.out, render.KindDone, nil)
}

func readIndex(text []byte) (index *render.Index, err error) {
	defer panicked(render.StageLoad, "the index makes its parser fail", &err)

	return parse.Index(text)
}

// serveProvenance checks a provenance file.
func (w *worker) serveProvenance(about []byte) error {
	keyring, err := w.next(render.KindKeyring)
	if err != nil {
		return err
	}

	file, err := w.next(render.KindSignature)
	if err != nil {
		return err
	}

	var wanted render.Provenance
	if err := json.Unmarshal(about, &wanted); err != nil {
		return err
	}

	if err := checkProvenance(file, keyring, &wanted); err != nil {
		return w.fail(&render.Failure{Stage: render.StageLoad, Text: err.Error()})
	}

	return render.WriteFrame(w.out, render.KindDone, nil)
}

func checkProvenance(file, keyring []byte, wanted *render.Provenance) (err error) {
	defer panicked(render.StageLoad, "the provenance file makes its parser fail", &err)

	return parse.CheckProvenance(file, keyring, wanted)
}

// lookup is the function of templates: it asks the parent. As in Helm, what does
// not exist is an empty object.
func (w *worker) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	question := render.Question{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	for _, text := range []string{apiVersion, kind, namespace, name} {
		if len(text) > maxName {
			return map[string]any{}, errors.New("lookup: the name of a kind, a namespace or an object is too long")
		}
	}

	if err := w.send(render.KindQuestion, question); err != nil {
		return map[string]any{}, err
	}

	content, err := w.next(render.KindReply)
	if err != nil {
		return map[string]any{}, err
	}

	var reply render.Reply
	if err := json.Unmarshal(content, &reply); err != nil {
		return map[string]any{}, err
	}

	if reply.Error != "" {
		return map[string]any{}, errors.New(reply.Error)
	}

	if len(reply.Object) == 0 {
		return map[string]any{}, nil
	}

	// The members of a list get their kind, and numbers the types that Helm's client gives them.
	found, _, err := unstructured.UnstructuredJSONScheme.Decode(reply.Object, nil, nil)
	if err != nil {
		return map[string]any{}, err
	}

	object, ok := found.(runtime.Unstructured)
	if !ok {
		return map[string]any{}, errors.New("lookup: what was found is neither an object nor a list")
	}

	return object.UnstructuredContent(), nil
}

// maxName is longer than any name in Kubernetes, in bytes.
const maxName = 1 << 10
