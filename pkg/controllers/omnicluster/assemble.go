package omnicluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/sources"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// collect lists the documents that name the cluster.
func collect(ctx context.Context, reader client.Reader, s *scope) error {
	options := []client.ListOption{
		client.InNamespace(s.cluster.Namespace), client.MatchingFields{index.ByCluster: s.cluster.Name},
	}
	controlPlanes, workers, machines := &v1alpha1.OmniControlPlaneList{}, &v1alpha1.OmniWorkersList{}, &v1alpha1.OmniMachineList{}

	for _, list := range []client.ObjectList{controlPlanes, workers, machines} {
		if err := reader.List(ctx, list, options...); err != nil {
			return fmt.Errorf("list the documents of the cluster: %w", err)
		}
	}

	s.input = template.Input{
		Cluster: s.cluster, ControlPlanes: controlPlanes.Items, Workers: workers.Items, Machines: machines.Items,
	}

	return nil
}

// assemble checks that this object is the only one that claims its cluster, and
// that its documents fit together.
func (r *reconciler) assemble(ctx context.Context, s *scope) (loop.Outcome, error) {
	older, err := r.olderRival(ctx, s.cluster)
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
		plural(len(documents.Workers), "worker set"), plural(len(documents.Machines), "machine document")), nil
}

// olderRival names an older OmniCluster that claims the same cluster in Omni.
func (r *reconciler) olderRival(ctx context.Context, cluster *v1alpha1.OmniCluster) (string, error) {
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

// isOlder orders objects by creation, and those of the same second by UID.
func isOlder(a, b *v1alpha1.OmniCluster) bool {
	if a.UID == b.UID {
		return false
	}

	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}

	return a.UID < b.UID
}

// validate renders the template and has Omni's own rules look at it.
func (r *reconciler) validate(ctx context.Context, s *scope) (loop.Outcome, error) {
	rendered, err := s.documents.Render(boundedValues(ctx, r.values(ctx, s)), template.MarkOf(s.cluster, r.hubFor(s)))

	var missing *missingValueError

	var unreadable *unreadableValueError

	switch {
	case errors.As(err, &missing):
		// The renderer's error names the object and the field that hold the reference.
		return loop.Wait(0, v1alpha1.ReasonValueNotFound, "%s", s.secrets.clean(ctx, strings.TrimPrefix(err.Error(), "render template: "))), nil
	case sources.Refused(err) != nil:
		return loop.Stall(v1alpha1.ReasonSecretProtected, "%s", strings.TrimPrefix(err.Error(), "render template: ")), nil
	case errors.As(err, &unreadable):
		return loop.Outcome{}, err
	case err != nil:
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", s.secrets.clean(ctx, err.Error())), nil
	}

	if err := plan.CheckTemplate(rendered); err != nil {
		return loop.Stall(v1alpha1.ReasonTemplateInvalid, "%s", s.secrets.clean(ctx, omni.Message(err))), nil
	}

	s.rendered = rendered

	return loop.Continue(v1alpha1.ReasonTemplateValid, "Omni's own rules accept the template"), nil
}

// hubFor is the hub in the mark that is rendered. A cluster that is only looked
// at keeps the mark that it has: to complete it is no difference that somebody has
// to know of.
func (r *reconciler) hubFor(s *scope) template.Hub {
	hub := template.Hub{ID: r.options.HubID, Name: r.options.ManagementCluster}

	spec := s.cluster.Spec
	if onlyLooks := spec.Suspend || spec.ChangePolicy == v1alpha1.ChangePolicyObserve; onlyLooks && s.owns(s.live) {
		hub.ID = s.live.Marks.Hub
		if hub.ID != r.options.HubID {
			hub.Name = s.live.Marks.ManagementCluster
		}
	}

	return hub
}

// missingValueError is a valueFrom that leads nowhere yet. The renderer's text
// around it names the object, the field, and what the field refers to.
type missingValueError struct {
	kind  string
	noKey bool
}

// Error implements error.
func (e *missingValueError) Error() string {
	if e.noKey {
		return "the " + e.kind + " has no such key"
	}

	return "the " + e.kind + " does not exist"
}

// unreadableValueError is a valueFrom that the API does not give us now.
type unreadableValueError struct{ cause error }

// Error implements error.
func (e *unreadableValueError) Error() string { return e.cause.Error() }

// Unwrap gives the cause.
func (e *unreadableValueError) Unwrap() error { return e.cause }

// values reads the texts of valueFrom live, each object once, and notes what
// came from a Secret.
func (r *reconciler) values(ctx context.Context, s *scope) template.ValueFunc {
	secrets, configMaps := map[string]*corev1.Secret{}, map[string]*corev1.ConfigMap{}

	return func(source v1alpha1.ValueSource) (string, error) {
		switch {
		case source.SecretKeyRef != nil:
			ref := source.SecretKeyRef

			secret, err := readOnce(ctx, r.live, secrets, "Secret", client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}, &corev1.Secret{})
			if err != nil {
				return "", err
			}

			value, found := secret.Data[ref.Key]
			if !found {
				return "", &missingValueError{kind: "Secret", noKey: true}
			}

			s.secrets.add(value)

			return string(value), nil
		case source.ConfigMapKeyRef != nil:
			ref := source.ConfigMapKeyRef

			configMap, err := readOnce(ctx, r.live, configMaps, "ConfigMap", client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}, &corev1.ConfigMap{})
			if err != nil {
				return "", err
			}

			if value, found := configMap.Data[ref.Key]; found {
				return value, nil
			}

			if value, found := configMap.BinaryData[ref.Key]; found {
				return string(value), nil
			}

			return "", &missingValueError{kind: "ConfigMap", noKey: true}
		}

		return "", errors.New("valueFrom names neither a ConfigMap nor a Secret")
	}
}

// readOnce reads an object, or returns the one that was read before.
func readOnce[O client.Object](ctx context.Context, reader client.Reader, known map[string]O, kind string, key client.ObjectKey, into O) (O, error) {
	if object, found := known[key.Name]; found {
		return object, nil
	}

	err := reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return into, &missingValueError{kind: kind}
	}

	if refused := sources.Refused(err); refused != nil {
		return into, refused
	}

	if err != nil {
		return into, &unreadableValueError{fmt.Errorf("read %s %q: %w", kind, key.Name, err)}
	}

	known[key.Name] = into

	return into, nil
}
