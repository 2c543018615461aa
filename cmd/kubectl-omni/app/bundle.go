package app

import (
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
of the logs of omni-apiserver and omni-controller, are in it as far as you may read them; what is missing is named. Read it before you
share it.`,
		Example: `  kubectl omni support-bundle -n fleet --redact --file bundle.yaml`,
		GroupID: groupLook,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			client, namespace, err := t.api()
			if err != nil {
				return err
			}

			var r *anonymizer
			if redacts {
				r = &anonymizer{salt: rand.Text()}
			}

			hub, err := t.hubClient()
			if err != nil {
				return err
			}

			documents := bundleOf(command.Context(), client, namespace)
			more, missing := hubDocuments(command.Context(), hub, namespace, programs)
			documents = finishBundle(append(documents, more...), missing, r)

			if file == "" || file == "-" {
				return writeBundle(t.Out, documents)
			}

			// A bundle that is there is not overwritten: it may have been sent.
			opened, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}

			return errors.Join(writeBundle(opened, documents), opened.Close())
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "The file to write, which must not exist. Default: standard output.")
	command.Flags().StringVar(&programs, "operator-namespace", "omni-cluster-operator-system", "The namespace in which omni-apiserver and omni-controller run.")
	command.Flags().BoolVar(&redacts, "redact", false, "Replace hostnames and addresses by hashes of this bundle.")

	return command
}

// bundleOf gathers our objects. The first document is about the bundle, and names what cannot be read.
func bundleOf(ctx context.Context, client versioned.Interface, namespace string) []map[string]any {
	about := map[string]any{"kind": "SupportBundle", "namespace": namespace, "plugin": version.Get().String()}

	if server, err := client.Discovery().ServerVersion(); err == nil {
		about["kubernetes"] = server.GitVersion
	}

	documents := []map[string]any{about}

	var missing []any

	for _, kind := range listsOf(client, namespace) {
		list, err := kind.list(ctx, metav1.ListOptions{})
		if err != nil {
			missing = append(missing, kind.name+": "+problemOf(err))

			continue
		}

		_ = apimeta.EachListItem(list, func(item runtime.Object) error {
			documents = append(documents, shownOf(kind.name, item))

			return nil
		})
	}

	about["missing"] = missing

	return documents
}

// finishBundle names what else is missing, and redacts all of it if asked to.
func finishBundle(documents []map[string]any, missing []any, r *anonymizer) []map[string]any {
	about := documents[0]

	if before, has := about["missing"].([]any); has {
		missing = append(before, missing...)
	}

	if about["missing"] = missing; len(missing) == 0 {
		delete(about, "missing")
	}

	if r != nil {
		r.learn(documents)

		for _, document := range documents {
			r.value(document)
		}
	}

	return documents
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
func shownOf(kind string, item runtime.Object) map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
	if err != nil {
		return map[string]any{"kind": kind, "problem": err.Error()}
	}

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
