package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/scheme"
	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

func (t *tool) supportBundleCommand() *cobra.Command {
	file, programs, redacts := "", "", false

	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write what helps others to help you: our objects without their contents, events, logs and versions",
		Long: `support-bundle writes the objects of omni.texashpc.com of a namespace as YAML, with a list of fields that were looked at: no Secret is
read, and values, patches, manifests, kernel arguments, diffs and foreign annotations are left out. Events about these objects, and the end
of the logs of omni-apiserver (without its audit log) and omni-controller, are in it as far as you may read them; what is missing is named.
Read it before you share it.`,
		Example: `  kubectl omni support-bundle -n fleet --redact --file bundle.yaml`,
		GroupID: groupLook,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var r *anonymizer
			if redacts {
				r = &anonymizer{salt: rand.Text()}
			}

			gathered, err := t.gather(command.Context(), programs)
			if err != nil {
				return err
			}

			for _, missing := range gathered.missing {
				if _, err = fmt.Fprintf(t.ErrOut, "Missing: %s\n", missing); err != nil {
					return err
				}
			}

			documents := gathered.finish(r)

			if file == "" || file == "-" {
				err = writeBundle(t.Out, documents)
			} else {
				err = writeBundleFile(file, documents)
			}

			return cmp.Or(err, gathered.unread)
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "The file to write, which must not exist. Default: standard output.")
	command.Flags().StringVar(&programs, "operator-namespace", "omni-cluster-operator-system", "The namespace in which omni-apiserver and omni-controller run.")
	command.Flags().BoolVar(&redacts, "redact", false, "Replace hostnames and addresses by hashes of this bundle.")

	return command
}

// bundle is what is gathered for a support bundle.
type bundle struct {
	documents []map[string]any // the first one is about the bundle
	missing   []string         // what cannot be read, and why
	unread    error            // why none of our objects is in it
	hosts     hostNames        // those that the documents have no field for
}

// gather reads what a bundle has. An error means that there is none: nothing can be read, or the user has interrupted it. While
// omni-apiserver is down, a bundle has what its Pods and the events say about that.
func (t *tool) gather(ctx context.Context, programs string) (*bundle, error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	hub, err := t.hubClient()
	if err != nil {
		return nil, err
	}

	b := &bundle{documents: []map[string]any{{"kind": "SupportBundle", "namespace": namespace, "plugin": version.Get().String()}}, hosts: hostNames{}}

	if err = b.addObjects(ctx, client, namespace); err != nil {
		b.unread = fmt.Errorf("none of our objects can be read: %w", err)
	}

	if ctx.Err() == nil {
		b.addHub(ctx, hub, namespace, programs)
	}

	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case b.unread != nil && len(b.documents) == 1:
		return nil, b.unread
	default:
		return b, nil
	}
}

// addObjects gathers our objects. It fails if no kind of them can be listed.
func (b *bundle) addObjects(ctx context.Context, client versioned.Interface, namespace string) error {
	if server, err := untilDone(ctx, client.Discovery().ServerVersion); err == nil {
		b.documents[0]["kubernetes"] = server.GitVersion
	} else if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	var failures []error

	kinds := listsOf(client, namespace)

	for _, kind := range kinds {
		list, err := kind.list(ctx, metav1.ListOptions{})
		if err != nil {
			b.miss("%s: %s", kind.name, problemOf(err))
			failures = append(failures, fmt.Errorf("list %s: %w", kind.name, err))

			continue
		}

		_ = apimeta.EachListItem(list, func(item runtime.Object) error {
			b.addObject(kind.name, item)

			return nil
		})
	}

	if len(failures) == len(kinds) {
		return failures[0]
	}

	return nil
}

// addObject gathers an object. Patches are left out, and name hosts.
func (b *bundle) addObject(kind string, item runtime.Object) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		b.documents = append(b.documents, map[string]any{"kind": kind, "problem": err.Error()})

		return
	}

	if spec, has := content["spec"].(map[string]any); has {
		b.hosts.gather(spec["patches"])
	}

	b.documents = append(b.documents, shownOf(kind, content))
}

// miss notes what a bundle does not have.
func (b *bundle) miss(format string, args ...any) {
	b.missing = append(b.missing, fmt.Sprintf(format, args...))
}

// finish returns the documents of a bundle, redacted if it is asked for.
func (b *bundle) finish(r *anonymizer) []map[string]any {
	if len(b.missing) > 0 {
		b.documents[0]["missing"] = anyList(b.missing)
	}

	if r != nil {
		for _, document := range b.documents {
			b.hosts.gather(document)
		}

		r.learn(b.hosts)

		for i, document := range b.documents {
			b.documents[i] = r.document(document)
		}
	}

	return b.documents
}

func anyList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}

	return list
}

// kindList lists the objects of a kind.
type kindList struct {
	name string
	list func(context.Context, metav1.ListOptions) (runtime.Object, error)
}

func listsOf(client versioned.Interface, namespace string) []kindList {
	api := client.OmniV1alpha1()

	return []kindList{
		{"OmniConnection", untyped(api.OmniConnections(namespace).List)},
		{"OmniCluster", untyped(api.OmniClusters(namespace).List)},
		{"OmniControlPlane", untyped(api.OmniControlPlanes(namespace).List)},
		{"OmniWorkers", untyped(api.OmniWorkers(namespace).List)},
		{"OmniMachine", untyped(api.OmniMachines(namespace).List)},
		{"OmniKubeconfigExport", untyped(api.OmniKubeconfigExports(namespace).List)},
		{"OmniSecretSync", untyped(api.OmniSecretSyncs(namespace).List)},
		{"OmniHelmRelease", untyped(api.OmniHelmReleases(namespace).List)},
		{"OmniRolloutPolicy", untyped(api.OmniRolloutPolicies(namespace).List)},
	}
}

func untyped[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}

// shownOf is what a bundle has of an object.
func shownOf(kind string, content map[string]any) map[string]any {
	shown, _ := allowedOf(kind).pick(content).(map[string]any)
	if shown == nil {
		shown = map[string]any{}
	}

	shown["kind"], shown["apiVersion"] = kind, scheme.Scheme.PrioritizedVersionsForGroup("omni.texashpc.com")[0].String()

	if annotations := ours(content); len(annotations) > 0 {
		if metadata, has := shown["metadata"].(map[string]any); has {
			metadata["annotations"] = annotations
		}
	}

	return shown
}

// ours are the annotations of an object that this project knows.
func ours(content map[string]any) map[string]any {
	metadata, _ := content["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	kept := map[string]any{}

	for key, value := range annotations {
		if strings.HasPrefix(key, ourAnnotations) {
			kept[key] = value
		}
	}

	return kept
}

// writeBundleFile writes a bundle into a new file, or none. One that is there is not overwritten: it may have been sent.
func writeBundleFile(name string, documents []map[string]any) error {
	opened, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	if err = errors.Join(writeBundle(opened, documents), opened.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}

	return nil
}

func writeBundle(out io.Writer, documents []map[string]any) error {
	for i, document := range slices.All(documents) {
		text, err := yaml.Marshal(document)
		if err != nil {
			return err
		}

		separator := "---\n"
		if i == 0 {
			separator = ""
		}

		if _, err = fmt.Fprintf(out, "%s%s", separator, text); err != nil {
			return err
		}
	}

	return nil
}
