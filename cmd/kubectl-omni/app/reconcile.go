package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/rollout"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
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

func (t *tool) suspendCommand() *cobra.Command {
	command := t.suspensionCommand("suspend", "suspended", "Change nothing of a cluster in Omni, or of a release by Helm, until it is resumed", true)
	command.Long = `suspend CLUSTER changes nothing of the cluster in Omni; its releases begin no install, upgrade or rollback, its
copies and exports go on. suspend release/RELEASE takes no action of Helm. A deletion is not held up.`

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

// defaultPromotion is how long a stage is promoted unless the user says otherwise.
const defaultPromotion = 24 * time.Hour

func (t *tool) promoteCommand() *cobra.Command {
	length, yes := defaultPromotion, false

	command := &cobra.Command{
		Use:   "promote POLICY STAGE",
		Short: "Let a stage of an OmniRolloutPolicy begin without the earlier ones, for a time",
		Example: `  # Production may begin until tomorrow; windows, freezes and limits count
  kubectl omni promote production prod -n fleet --for 24h`,
		GroupID: groupDecide,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			policy, err := t.policy(command.Context(), args[0])
			if err != nil {
				return err
			}

			ends := t.now().Add(length).UTC()
			if err = checkPromotion(policy, args[1], length); err != nil {
				return err
			}

			key, until := v1alpha1.AnnotationPromotePrefix+args[1], ends.Format(time.RFC3339)
			if err = refuseIfGitOwns(policy, "OmniRolloutPolicy", until, "metadata", "annotations", key); err != nil {
				return err
			}

			if _, err = io.WriteString(t.ErrOut, closedUntil(policy, args[1], ends)); err != nil {
				return err
			}

			if !yes {
				question := fmt.Sprintf("Let stage %s of %s begin until %s, whether the earlier stages have proved a change or not?", args[1], policy.Name, until)
				if err = t.confirm(command.Context(), question); err != nil {
					return err
				}
			}

			if err = t.change(command.Context(), policy, nil, map[string]any{key: until}); err != nil {
				return err
			}

			return t.told("omnirolloutpolicy/%s: stage %s is promoted until %s", policy.Name, args[1], until)
		},
	}
	command.Flags().DurationVar(&length, "for", length, "How long, at most 168h.")
	command.Flags().BoolVarP(&yes, "yes", "y", false, "Ask no question.")

	return command
}

// checkPromotion says why a stage cannot be promoted for a time, or need not be.
func checkPromotion(policy *v1alpha1.OmniRolloutPolicy, name string, length time.Duration) error {
	number := slices.IndexFunc(policy.Spec.Stages, func(one v1alpha1.RolloutStage) bool { return one.Name == name })

	switch {
	case number < 0:
		return fmt.Errorf("OmniRolloutPolicy %q has no stage %q", policy.Name, name)
	case number == 0 && policy.Spec.Stages[0].Promotion != v1alpha1.PromotionManual:
		return fmt.Errorf("stage %q is the first one, and begins without a promotion", name)
	case length <= 0 || length > rollout.MaxPromotion:
		return errors.New("--for must be more than nothing, and at most 168h")
	default:
		return nil
	}
}

// closedUntil warns of a promotion that ends before the stage opens; empty if it does not.
func closedUntil(policy *v1alpha1.OmniRolloutPolicy, name string, ends time.Time) string {
	for _, stage := range policy.Status.Stages {
		if stage.Name != name || stage.Open || stage.NextChange == nil || stage.NextChange.Time.Before(ends) {
			continue
		}

		return fmt.Sprintf("Warning: stage %s opens %s, when the promotion is over: nothing begins by it. Give a longer time with --for, at most %.0fh.\n",
			name, words.Time(stage.NextChange.Time), rollout.MaxPromotion.Hours())
	}

	return ""
}

// fieldManager is who the API server says wrote what this tool wrote. It must not begin with kubectl: Flux takes the fields of
// such managers over, and so removes what Git does not set (fluxcd/pkg/ssa, PatchReplaceFieldsManagers).
const fieldManager = "omni-plugin"

// cluster reads an OmniCluster.
func (t *tool) cluster(ctx context.Context, name string) (*v1alpha1.OmniCluster, error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	return client.OmniV1alpha1().OmniClusters(namespace).Get(ctx, name, metav1.GetOptions{})
}

// policy reads an OmniRolloutPolicy.
func (t *tool) policy(ctx context.Context, name string) (*v1alpha1.OmniRolloutPolicy, error) {
	client, namespace, err := t.api()
	if err != nil {
		return nil, err
	}

	found, err := client.OmniV1alpha1().OmniRolloutPolicies(namespace).Get(ctx, name, metav1.GetOptions{})
	if isUnknownKind(err) {
		return nil, errors.New("the API server does not know OmniRolloutPolicy: it is older than this plugin")
	}

	return found, err
}

// isUnknownKind reports whether a server has no such kind. That an object does not exist, it says in other words.
func isUnknownKind(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// change patches an object that was read: it fails if another one has its name by now. What the controller writes meanwhile
// is no reason to fail, and whatever decides about changes carries their hash. set are the fields below spec, annotations
// those of the metadata; nil removes one.
func (t *tool) change(ctx context.Context, o object, set, annotations map[string]any) error {
	metadata := map[string]any{"uid": o.GetUID()}
	if annotations != nil {
		metadata["annotations"] = annotations
	}

	body := map[string]any{"metadata": metadata}
	if set != nil {
		body["spec"] = set
	}

	patch, err := json.Marshal(body)
	if err != nil {
		return err
	}

	client, _, err := t.api()
	if err != nil {
		return err
	}

	api, options := client.OmniV1alpha1(), metav1.PatchOptions{FieldManager: fieldManager}

	switch o.(type) {
	case *v1alpha1.OmniCluster:
		_, err = api.OmniClusters(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	case *v1alpha1.OmniHelmRelease:
		_, err = api.OmniHelmReleases(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	case *v1alpha1.OmniRolloutPolicy:
		_, err = api.OmniRolloutPolicies(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, options)
	default:
		err = fmt.Errorf("%T cannot be changed", o)
	}

	return err
}

// told says what was done.
func (t *tool) told(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format+"\n", args...)

	return err
}
