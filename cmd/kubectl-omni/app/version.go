package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"omni.texashpc.com/omni-cluster-operator/pkg/version"
)

func (t *tool) versionCommand() *cobra.Command {
	programs := ""

	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin, of our programs and of each Omni of the namespace",
		Long: `version shows the version of the plugin, the images that omni-apiserver and omni-controller run, as far as you may read their Pods, and
what each Omni that an OmniConnection of the namespace leads to says of itself.`,
		Example: `  kubectl omni version -n fleet`,
		GroupID: groupLook,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return t.showVersions(command.Context(), programs) },
	}
	command.Flags().StringVar(&programs, "operator-namespace", operatorNamespace, "The namespace in which omni-apiserver and omni-controller run.")

	return command
}

// showVersions prints what is known, first of all the version of the plugin, even if the API server does not answer.
func (t *tool) showVersions(ctx context.Context, programs string) error {
	table := printers.GetNewTabWriter(t.Out)
	line := func(cells ...string) {
		_, _ = io.WriteString(table, printers.EscapeTerminal(strings.Join(cells, "\t"))+"\n")
	}

	line("WHAT", "VERSION", "API", "INSTANCE")
	line("kubectl-omni", version.Get().String())

	images, unread := t.imagesOf(ctx, programs)
	for _, program := range slices.Sorted(maps.Keys(images)) {
		line(program, strings.Join(images[program], ", "))
	}

	err := errors.Join(t.versionsOfOmni(ctx, line), table.Flush())

	if unread != nil {
		_, _ = fmt.Fprintf(t.ErrOut, "Missing: the Pods of namespace %q: %s\n", programs, printers.EscapeTerminal(unread.Error()))
	}

	return err
}

// versionsOfOmni prints a line for each OmniConnection of the namespace.
func (t *tool) versionsOfOmni(ctx context.Context, line func(cells ...string)) error {
	client, namespace, err := t.api()
	if err != nil {
		return err
	}

	connections, err := client.OmniV1alpha1().OmniConnections(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the OmniConnections of namespace %q: %w", namespace, err)
	}

	for i := range connections.Items {
		name, server := connections.Items[i].Name, connections.Items[i].Status.Omni
		if server == nil {
			line("OmniConnection/"+name, "unknown")
		} else {
			line("OmniConnection/"+name, server.Version, strconv.FormatInt(server.APIVersion, 10), server.Instance)
		}
	}

	return nil
}

// imagesOf returns the images that our programs run, by the name of the container; several while an upgrade goes on.
func (t *tool) imagesOf(ctx context.Context, programs string) (map[string][]string, error) {
	hub, err := t.hubClient()
	if err != nil {
		return nil, err
	}

	pods, err := hub.CoreV1().Pods(programs).List(ctx, metav1.ListOptions{LabelSelector: programSelector, Limit: maxPods})
	if err != nil {
		return nil, err
	}

	images := map[string][]string{}

	for i := range pods.Items {
		for _, container := range pods.Items[i].Spec.Containers {
			if !slices.Contains(images[container.Name], container.Image) {
				images[container.Name] = append(images[container.Name], container.Image)
			}
		}
	}

	return images, nil
}
