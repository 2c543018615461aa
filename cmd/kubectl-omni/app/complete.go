package app

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeClusters offers the names of the OmniClusters of the namespace to the shell.
func (t *tool) completeClusters(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	client, namespace, err := t.api()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	clusters, err := client.OmniV1alpha1().OmniClusters(namespace).List(command.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	var names []string

	for i := range clusters.Items {
		if name := clusters.Items[i].Name; strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}
