package omnicluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/controllers/omnicluster/consent"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// readCluster reads the cluster from the local copy, once the copy shows our own last writes.
func (r *reconciler) readCluster(ctx context.Context, s *scope) (loop.Outcome, error) {
	if err := r.catchUp(ctx, s); err != nil {
		if errors.Is(err, omni.ErrBehind) || errors.Is(err, omni.ErrNotSynced) {
			s.behind = errors.Is(err, omni.ErrBehind)

			return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", omni.Message(err)), nil
		}

		return loop.Outcome{}, err
	}

	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	owner, err := r.ownerState(ctx, s, live)
	if err != nil {
		return loop.Outcome{}, err
	}

	s.seen = &seen{live: live, owner: owner}
	s.seen.adopting = claimOf(s).IsAdopting(s.cluster.Status.Adopting)

	return loop.Continue(v1alpha1.ReasonConnected, "OmniConnection %q is connected to %s", s.connection.Name, s.connection.Spec.Endpoint), nil
}

// ownerState reports whether the object whose mark the cluster carries exists in this management cluster. A cluster is taken
// over on no evidence of a cache, which lacks what is new and namespaces that are not watched.
func (r *reconciler) ownerState(ctx context.Context, s *scope, live omni.Live) (consent.OwnerState, error) {
	marks := live.Marks // foreign text
	isName := len(validation.IsDNS1123Label(marks.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(marks.Name)) == 0

	if !live.Exists || marks.UID == "" || s.owns(live) || !s.hubs.Ours(marks.Hub) || !isName {
		return consent.OwnerUnknown, nil
	}

	state, err := readOwner(ctx, r.client, s, live)
	if err == nil && state != consent.OwnerGone {
		return state, nil
	}

	if !s.cluster.Spec.Adopt {
		return state, nil // for a message only
	}

	if state, err = readOwner(ctx, r.live, s, live); err != nil && !apierrors.IsForbidden(err) {
		return consent.OwnerUnknown, fmt.Errorf("read OmniCluster %s/%s, to which cluster %q in Omni belongs: %w", marks.Namespace, marks.Name, s.name, err)
	}

	return state, nil
}

// readOwner looks for the object that the cluster's mark names. One that was made anew under its name, for the same cluster, is to
// take that back: nobody else may, unless it has its cluster in another Omni. The name of the management cluster in the mark only
// informs.
func readOwner(ctx context.Context, reader client.Reader, s *scope, live omni.Live) (consent.OwnerState, error) {
	other, marks := &v1alpha1.OmniCluster{}, live.Marks
	key := client.ObjectKey{Namespace: marks.Namespace, Name: marks.Name}

	err := reader.Get(ctx, key, other)

	switch {
	case apierrors.IsNotFound(err):
		return consent.OwnerGone, nil
	case err != nil:
		return consent.OwnerUnknown, err
	case string(other.UID) == marks.UID:
		return consent.OwnerExists, nil
	case key == client.ObjectKeyFromObject(s.cluster) || other.EffectiveClusterName() != s.name,
		other.Status.OmniClusterID != "" && other.Status.OmniClusterID != live.UUID:
		return consent.OwnerGone, nil
	default:
		return consent.OwnerMadeAnew, nil
	}
}

// catchUp waits a moment for the local copy to show our own last writes. Otherwise each write would cause a run with
// nothing to do yet.
func (r *reconciler) catchUp(ctx context.Context, s *scope) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()

	for {
		err := s.lease.Ready(s.name)
		if !errors.Is(err, omni.ErrBehind) {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(catchUpPoll):
		}
	}
}

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

// olderClaimant returns the name of the oldest OmniCluster that claims the same cluster in Omni; empty if that is this one.
func (r *reconciler) olderClaimant(ctx context.Context, cluster *v1alpha1.OmniCluster) (string, error) {
	list := &v1alpha1.OmniClusterList{}

	err := r.client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingFields{index.ByRemote: index.RemoteKey(cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName())})
	if err != nil {
		return "", fmt.Errorf("list the OmniClusters with the same cluster name: %w", err)
	}

	oldest := cluster

	for i := range list.Items { // in any order
		if isOlder(&list.Items[i], oldest) {
			oldest = &list.Items[i]
		}
	}

	if oldest == cluster {
		return "", nil
	}

	return oldest.Name, nil
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

// validate renders the template and checks it with the rules of Omni's client library.
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

	return loop.Continue(v1alpha1.ReasonTemplateValid, "the rules of Omni's client library, of Omni %s, accept the template; this Omni may have others", plan.LibraryVersion), nil
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

// makePlan decides to whom the cluster belongs, and compares the template with Omni.
//
// It decides that twice: the local copy changes meanwhile, and a plan from a later state than the first decision would
// revert a cluster that has just got another owner. Changes after the second decision fail in Omni, because updates
// carry the version that they were planned from.
func (r *reconciler) makePlan(ctx context.Context, s *scope) (loop.Outcome, error) {
	if verdict := claimOf(s).Judge(); !verdict.Continues() {
		return verdict, nil
	}

	var err error
	if s.gate, err = r.findGate(ctx, s); err != nil {
		return loop.Outcome{}, err
	}

	planned, err := s.lease.Plan(ctx, s.name, s.rendered.template, plan.Options{
		EveryDestroyIsDestructive: s.seen.adopting,
		// An old mark, or the mark of a hub that is being taken over, must be replaced by the first write.
		ClusterFirst: s.owns(s.seen.live) && s.seen.live.Marks.Hub != r.options.HubID,
		Rollout:      s.gate.Holds(),
	})
	r.processStates.of(s.cluster).checked = s.rendered.template.Checked()

	if err != nil {
		return r.explainPlan(ctx, s, err)
	}

	live, err := omni.Inspect(ctx, s.lease.Copy(), s.name)
	if err != nil {
		return loop.Outcome{}, errors.New(omni.Message(err))
	}

	s.seen.live = live

	claim := claimOf(s)
	if verdict := claim.Judge(); !verdict.Continues() {
		return verdict, nil
	}

	// The plan is based on the first decision.
	if claim.IsAdopting(s.cluster.Status.Adopting) && !s.seen.adopting {
		return loop.Wait(time.Second, v1alpha1.ReasonConflict, "cluster %q appeared in Omni meanwhile; the plan is made anew", s.name), nil
	}

	if verdict := consent.JudgeControlPlane(s.cluster, s.documents.ControlPlane, claim, planned); !verdict.Continues() {
		return verdict, nil
	}

	s.plan = planned

	if planned.Empty() {
		return loop.Continue(v1alpha1.ReasonUpToDate, "no changes"), nil
	}

	return loop.Continue(v1alpha1.ReasonChangesPlanned, "%s", consent.Summary(planned)+claim.Takeover()), nil
}

func (r *reconciler) explainPlan(ctx context.Context, s *scope, err error) (loop.Outcome, error) {
	message := s.rendered.secrets.Clean(ctx, omni.Message(err))

	switch {
	case errors.Is(err, omni.ErrTemplate), errors.Is(err, omni.ErrUnserved):
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", message), nil
	case errors.Is(err, omni.ErrCollision):
		return loop.Stall(v1alpha1.ReasonCollision, "%s. This cluster goes on by itself as soon as that is free", message), nil
	case errors.Is(err, omni.ErrClusterTearingDown):
		return loop.Wait(0, v1alpha1.ReasonRemoteDeleting, "%s", message), nil
	case errors.Is(err, omni.ErrNotSynced), errors.Is(err, omni.ErrBehind):
		s.behind = errors.Is(err, omni.ErrBehind)

		return loop.Wait(time.Second, v1alpha1.ReasonMirrorNotSynced, "%s", message), nil
	default:
		return loop.Outcome{}, errors.New(message)
	}
}

// planVerbosity is the verbosity at which plans are logged in full.
const planVerbosity = 2

// digest stands for a plan that was logged.
type digest [sha256.Size]byte

// logPlan logs a plan in full, with the hash that approves it: once in each process until the plan changes, and when
// some of it is applied. The status may have only a part of it, and the log of an earlier process may be gone, so what
// the status has says nothing about what can be read.
func (r *reconciler) logPlan(ctx context.Context, s *scope) {
	logger := log.FromContext(ctx).V(planVerbosity)
	if !logger.Enabled() {
		return
	}

	state := r.processStates.of(s.cluster)
	if s.plan.Empty() {
		state.logged = digest{}

		return
	}

	hash, full := s.synced.Hash(), s.plan.Diff(slices.Concat(s.plan.Changes, s.plan.WaitingForOmni))

	now := digest(sha256.Sum256([]byte(hash + "\n" + full)))
	if now == state.logged && !s.wrote() {
		return
	}

	state.logged = now
	logger.Info("plan", "changes", consent.Summary(s.plan), "hash", hash, "diff", full)
}
