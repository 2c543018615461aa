package app

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// completeClusters offers the names of the OmniClusters of the namespace to the shell. It reads their metadata only: each
// press of the key asks anew.
func (t *tool) completeClusters(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	namespace, err := t.namespace()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	client, err := t.metadataClient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	clusters, err := client.Resource(v1alpha1.SchemeGroupVersion.WithResource("omniclusters")).Namespace(namespace).List(command.Context(), metav1.ListOptions{})
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
