package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (t *tool) suspendCommand() *cobra.Command {
	command := t.suspensionCommand("suspend", "suspended", "Change nothing of a cluster in Omni, or of a release by Helm, until it is resumed", true)
	command.Long = `suspend CLUSTER changes nothing of the cluster in Omni; its releases, copies and exports go on. suspend release/RELEASE takes no action of
Helm. A deletion is not held up.`

	return command
}

func (t *tool) resumeCommand() *cobra.Command {
	return t.suspensionCommand("resume", "resumed", "Go on with what was suspended", false)
}

func (t *tool) suspensionCommand(verb, done, short string, suspend bool) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " CLUSTER | release/RELEASE",
		Short:   short,
		Example: fmt.Sprintf("  kubectl omni %s edge-01 -n fleet\n\n  # An OmniHelmRelease\n  kubectl omni %s release/monitoring -n fleet", verb, verb),
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			o, kind, err := t.named(command.Context(), args[0])
			if err != nil {
				return err
			}

			if err = refuseIfGitOwns(o, kind, suspend, "spec", "suspend"); err != nil {
				return err
			}

			if err = t.change(command.Context(), o, map[string]any{"suspend": suspend}, nil); err != nil {
				return err
			}

			return t.told("%s/%s: %s", strings.ToLower(kind), o.GetName(), done)
		},
	}
}

// named reads an OmniCluster, or with release/ in front an OmniHelmRelease.
func (t *tool) named(ctx context.Context, argument string) (o object, kind string, err error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, "", err
	}

	if name, isRelease := strings.CutPrefix(argument, "release/"); isRelease {
		release, err := client.OmniV1alpha1().OmniHelmReleases(namespace).Get(ctx, name, metav1.GetOptions{})

		return release, "OmniHelmRelease", err
	}

	cluster, err := client.OmniV1alpha1().OmniClusters(namespace).Get(ctx, argument, metav1.GetOptions{})

	return cluster, "OmniCluster", err
}
