package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// collect returns the documents that refer to the cluster.
func collect(ctx context.Context, reader client.Reader, cluster *v1alpha1.OmniCluster) (template.Input, error) {
	options := []client.ListOption{
		client.InNamespace(cluster.Namespace), client.MatchingFields{index.ByCluster: cluster.Name},
	}
	controlPlanes, workers, machines := &v1alpha1.OmniControlPlaneList{}, &v1alpha1.OmniWorkersList{}, &v1alpha1.OmniMachineList{}

	for _, list := range []client.ObjectList{controlPlanes, workers, machines} {
		if err := reader.List(ctx, list, options...); err != nil {
			return template.Input{}, fmt.Errorf("list the documents of the cluster: %w", err)
		}
	}

	return template.Input{
		Cluster: cluster, ControlPlanes: controlPlanes.Items, Workers: workers.Items, Machines: machines.Items,
	}, nil
}

// assemble checks that this object is the only one that claims its cluster, and that its documents fit together.
func (r *reconciler) assemble(ctx context.Context, s *scope) (loop.Outcome, error) {
	older, err := r.olderClaimant(ctx, s.cluster)
	if err != nil {
		return loop.Outcome{}, err
	}

	if older != "" {
		return loop.Stall(v1alpha1.ReasonDuplicateClusterName, "OmniCluster %q, which is older, has the same cluster name %q on the same connection",
			older, s.name), nil
	}

	documents, err := template.Assemble(s.input)

	var assembleError *template.AssembleError

	switch {
	case errors.As(err, &assembleError) && assembleError.Wait:
		return loop.Wait(0, assembleError.Reason, "%s", assembleError.Message), nil
	case errors.As(err, &assembleError):
		return loop.Stall(assembleError.Reason, "%s", assembleError.Message), nil
	case err != nil:
		return loop.Outcome{}, fmt.Errorf("assemble the documents: %w", err)
	}

	s.documents = documents

	return loop.Continue(v1alpha1.ReasonAssembledTemplate, "1 control plane, %s, %s",
		words.Plural(len(documents.Workers), "worker set"), words.Plural(len(documents.Machines), "machine document")), nil
}

// olderClaimant returns the name of an older OmniCluster that claims the same cluster in Omni; empty if there is none.
func (r *reconciler) olderClaimant(ctx context.Context, cluster *v1alpha1.OmniCluster) (string, error) {
	list := &v1alpha1.OmniClusterList{}

	err := r.client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingFields{index.ByRemote: index.RemoteKey(cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())})
	if err != nil {
		return "", fmt.Errorf("list the OmniClusters with the same cluster name: %w", err)
	}

	for i := range list.Items {
		if isOlder(&list.Items[i], cluster) {
			return list.Items[i].Name, nil
		}
	}

	return "", nil
}

// isOlder reports whether a is older than b: by creation time, and within the same second by UID.
func isOlder(a, b *v1alpha1.OmniCluster) bool {
	if a.UID == b.UID {
		return false
	}

	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}

	return a.UID < b.UID
}

// validate renders the template and checks it with Omni's own rules.
func (r *reconciler) validate(ctx context.Context, s *scope) (loop.Outcome, error) {
	confidential := &SecretTexts{}

	text, err := s.documents.Render(valuesFrom(ctx, r.live, s.cluster.Namespace, confidential), template.MarkOf(s.cluster, r.hubFor(s)))

	var missing *MissingValueError

	var unreadable *UnreadableValueError

	switch {
	case errors.As(err, &missing):
		// The renderer's error names the object and the field that hold the reference.
		return loop.Wait(0, v1alpha1.ReasonValueNotFound, "%s", confidential.Clean(ctx, strings.TrimPrefix(err.Error(), "render template: "))), nil
	case sources.Refused(err) != nil:
		return loop.Stall(v1alpha1.ReasonSecretProtected, "%s", strings.TrimPrefix(err.Error(), "render template: ")), nil
	case errors.As(err, &unreadable):
		return loop.Outcome{}, err
	case err != nil:
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", confidential.Clean(ctx, err.Error())), nil
	}

	checked, err := r.processStates.of(s.cluster).checked.Load(text)
	if err != nil {
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", confidential.Clean(ctx, omni.Message(err))), nil
	}

	s.rendered = &rendered{template: checked, hash: template.Hash(text), secrets: confidential}

	return loop.Continue(v1alpha1.ReasonTemplateValid, "Omni's own rules accept the template"), nil
}

// hubFor returns the hub for the mark in the template. A cluster under the policy Observe keeps the mark that it has:
// completing the mark is not a difference that a user has to see.
func (r *reconciler) hubFor(s *scope) template.Hub {
	hub := template.Hub{ID: r.options.HubID, Name: r.options.ManagementCluster}

	spec := s.cluster.Spec
	if isObserving := spec.Suspend || spec.ChangePolicy == v1alpha1.ChangePolicyObserve; isObserving && s.owns(s.seen.live) {
		hub.ID = s.seen.live.Marks.Hub
		if hub.ID != r.options.HubID {
			hub.Name = s.seen.live.Marks.ManagementCluster
		}
	}

	return hub
}
