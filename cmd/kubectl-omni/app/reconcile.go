package app

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func (t *tool) reconcileCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "reconcile CLUSTER | release/RELEASE",
		Short:   "Ask the controller to look at it now",
		Example: "  kubectl omni reconcile edge-01 -n fleet",
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(1), ValidArgsFunction: t.completeClusters,
		RunE: func(command *cobra.Command, args []string) error {
			o, kind, err := t.named(command.Context(), args[0])
			if err != nil {
				return err
			}

			at := t.now().UTC().Format(time.RFC3339Nano)
			if err = t.change(command.Context(), o, nil, map[string]any{v1alpha1.AnnotationReconcileRequestedAt: at}); err != nil {
				return err
			}

			return t.told("%s/%s: asked for at %s", strings.ToLower(kind), o.GetName(), at)
		},
	}
}
