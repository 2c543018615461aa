package omnikubeconfigexport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/hubs"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

// write stores the kubeconfig, and then removes the Secrets that were the target before.
func (r *reconciler) write(ctx context.Context, s *scope) (loop.Outcome, error) {
	content := issued{access: s.found.access, claims: s.found.claims, specHash: s.found.specHash}
	rotated := s.found.rotated

	if s.fresh != nil {
		content, rotated = *s.fresh, words.StoredTime(r.options.Now()).Time
	}

	want, err := s.desired(content, rotated)
	if err != nil {
		return loop.Outcome{}, fmt.Errorf("render the kubeconfig: %w", err)
	}

	if wait := r.rewritePause(s, want); wait > 0 {
		return loop.Wait(wait, v1alpha1.ReasonConflict, "somebody changed Secret %q (%s) right after it was corrected; it is written again once a minute: "+
			"find out who does that, or choose another target", s.shown(want), difference(s.secret, want)), nil
	}

	onlyMarks, former := lacksOnlyMarks(s.secret, want), ""
	if s.secret != nil {
		former = s.secret.Labels[v1alpha1.MarkHub]
	}

	// Also if the process stops or the run was long: a kubeconfig that is in no Secret is lost then, and lives until its end.
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()

	corrected, err := r.store(storing, s, want)
	if err != nil {
		// An admission webhook that refuses a Secret may quote it.
		return loop.Outcome{}, redact.Of(content.access.token).Error(err) // only the text is another
	}

	s.secret, s.found, s.stored = want, inspect(want, s.shape), true

	if s.fresh != nil {
		r.requests.stored(s.export)
	} else if corrected {
		r.corrections.Store(client.ObjectKeyFromObject(s.export), correction{s.correctedTo(want), r.options.Now()})
	}

	r.announceWritten(s, content, corrected && !onlyMarks)

	if onlyMarks && former != s.hubs.Own || s.hubs.IsPrevious(former) {
		hubs.Marked(r.events, s.export, fmt.Sprintf("Secret %q", s.shown(want)), former)
	}

	if outcome, err := r.removeFormer(ctx, s); err != nil || !outcome.Continues() {
		return outcome, err
	}

	s.onlyTarget = true

	if s.late != "" {
		return loop.Continue(v1alpha1.ReasonRenewalFailing, "Secret %q: %s", s.shown(want), renewalFailing(content.claims, s.late)), nil
	}

	if s.refused != "" {
		return refusedBy(s), nil
	}

	if s.doubt != "" {
		return loop.Continue(v1alpha1.ReasonClockSkew, "Secret %q: %s", s.shown(want), s.doubt), nil
	}

	return loop.Continue(v1alpha1.ReasonWritten, "Secret %q holds a kubeconfig for user %q of cluster %q, valid until %s",
		s.shown(want), s.want.User, s.want.ClusterName, words.Time(content.claims.expires())), nil
}

// announceWritten announces why the target was written, if it was; corrected is true if it was not as it has to be.
func (r *reconciler) announceWritten(s *scope, content issued, corrected bool) {
	switch {
	case s.fresh != nil:
		r.events.Eventf(s.export, nil, corev1.EventTypeNormal, "KubeconfigIssued", "IssueKubeconfig",
			"Secret %q holds a new kubeconfig for user %q, valid until %s: %s", s.shown(s.secret), s.want.User, words.Time(content.claims.expires()), s.cause)
	case s.adopted:
		r.events.Eventf(s.export, nil, corev1.EventTypeNormal, "SecretAdopted", "WriteSecret",
			"Secret %q was taken over, as spec.adopt says, with the kubeconfig that it held", s.shown(s.secret))
	case corrected:
		r.events.Eventf(s.export, nil, corev1.EventTypeNormal, "SecretCorrected", "WriteSecret",
			"Secret %q was not as it has to be and was written again, with the kubeconfig that it held", s.shown(s.secret))
	}
}

// store writes the target if it is not as desired. corrected reports whether there was one that differed.
func (r *reconciler) store(ctx context.Context, s *scope, want *corev1.Secret) (corrected bool, err error) {
	has := s.secret

	switch {
	case has == nil: // one without a new kubeconfig was deleted to be made again
		return s.fresh == nil, r.create(ctx, want)
	case apiequality.Semantic.DeepEqual(has, want):
		return false, nil
	case has.Type == want.Type && (has.Immutable == nil || !*has.Immutable):
		// The update has the resourceVersion that was read, so a change in between fails it.
		if err := r.client.Update(ctx, want); err != nil {
			return false, fmt.Errorf("update Secret %q: %w", want.Name, err)
		}

		return true, nil
	}

	return true, r.replace(ctx, s, want)
}

// replace deletes the target and makes it again: its type, or that it is immutable, cannot be changed in place. Whoever set it
// changed our Secret.
func (r *reconciler) replace(ctx context.Context, s *scope, want *corev1.Secret) error {
	want.UID, want.ResourceVersion = "", ""

	// What is refused must not cost the Secret that is there. That there is one is the last that a create looks at.
	if err := r.client.Create(ctx, want.DeepCopy(), client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) && !isFullQuota(err) {
		return fmt.Errorf("replace Secret %q: %w", want.Name, err)
	}

	// A finalizer may hold the old Secret for a while, and the answer to each of the two writes may be lost.
	r.requests.hold(s.export, s.found)

	if err := r.client.Delete(ctx, s.secret, exactly(s.secret)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replace Secret %q: %w", want.Name, err)
	}

	return r.create(ctx, want)
}

// isFullQuota reports whether a ResourceQuota that is just full refused a dry run: it counts the Secret that is about to be deleted,
// too. One that was lowered below what there is would refuse the new one as well. What the quota says has no type; it ends with
// ", used: secrets=2, limited: secrets=2" (k8s.io/apiserver, pkg/admission/plugin/resourcequota).
func isFullQuota(err error) bool {
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
		return false
	}

	_, rest, _ := strings.Cut(err.Error(), ", used: ")
	used, limited, found := strings.Cut(rest, ", limited: ")

	return found && used == limited
}

// create creates the target. If it exists by now, the next run decides to whom it belongs.
func (r *reconciler) create(ctx context.Context, want *corev1.Secret) error {
	if err := r.client.Create(ctx, want); err != nil {
		return fmt.Errorf("create Secret %q: %w", want.Name, err)
	}

	return nil
}

// desired returns the target in its desired state. Labels and annotations of others stay, data of others does not.
func (s *scope) desired(content issued, rotated time.Time) (*corev1.Secret, error) {
	var has map[string][]byte
	if s.secret != nil && s.fresh == nil {
		has = s.secret.Data
	}

	data, err := s.shape.dataOf(content.access, has)
	if err != nil {
		return nil, err
	}

	target := s.export.EffectiveTarget()

	want := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: target.Namespace, Name: target.Name, Labels: maps.Clone(s.found.labels), Annotations: maps.Clone(s.found.annotations),
	}}
	if s.secret != nil {
		want = s.secret.DeepCopy()
	}

	want.Type, want.Data, want.Immutable = corev1.SecretTypeOpaque, data, nil
	want.Labels, want.Annotations = nonNil(want.Labels), nonNil(want.Annotations)
	forgetFormer(want)
	s.applyTemplate(want)

	want.Labels[v1alpha1.LabelExportUID], want.Labels[v1alpha1.MarkHub] = string(s.export.UID), s.hubs.Own

	if cluster := s.export.Spec.ClusterRef.Name; len(validation.IsValidLabelValue(cluster)) == 0 {
		want.Labels[v1alpha1.LabelCluster] = cluster
	}

	if s.shape.format == v1alpha1.FormatArgoCD {
		want.Labels[argoLabel] = argoLabelValue
	} else if want.Labels[argoLabel] == argoLabelValue && s.template().Labels[argoLabel] == "" {
		// The Secret may have been one for Argo CD before.
		delete(want.Labels, argoLabel)
	}

	maps.Copy(want.Annotations, map[string]string{
		v1alpha1.AnnotationExportName:       s.export.Name,
		v1alpha1.AnnotationExportSecret:     keyOf(want).String(),
		v1alpha1.AnnotationExportCluster:    s.shape.cluster,
		v1alpha1.AnnotationKubeconfigHash:   s.shape.hash(data),
		v1alpha1.AnnotationSpecHash:         content.specHash,
		v1alpha1.AnnotationExpirationTime:   words.Time(content.claims.expires()),
		v1alpha1.AnnotationLastRotationTime: words.Time(rotated),
	})

	if target.Namespace != s.export.Namespace {
		want.Annotations[v1alpha1.AnnotationExportNamespace] = s.export.Namespace
	}

	return want, nil
}

// templateKeys is the content of the annotation AnnotationTemplateKeys.
type templateKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// template is spec.secretTemplate; an empty one if it is not set.
func (s *scope) template() v1alpha1.SecretTemplate {
	return ptr.Deref(s.export.Spec.SecretTemplate, v1alpha1.SecretTemplate{})
}

// applyTemplate sets the metadata of spec.secretTemplate, and removes what an earlier template set.
func (s *scope) applyTemplate(secret *corev1.Secret) {
	template := s.template()

	var before templateKeys
	// A list that cannot be parsed counts as empty.
	_ = json.Unmarshal([]byte(secret.Annotations[v1alpha1.AnnotationTemplateKeys]), &before)

	for _, key := range before.Labels {
		delete(secret.Labels, key)
	}

	for _, key := range before.Annotations {
		delete(secret.Annotations, key)
	}

	maps.Copy(secret.Labels, template.Labels)
	maps.Copy(secret.Annotations, template.Annotations)

	now := templateKeys{Labels: slices.Sorted(maps.Keys(template.Labels)), Annotations: slices.Sorted(maps.Keys(template.Annotations))}
	if len(now.Labels)+len(now.Annotations) == 0 {
		delete(secret.Annotations, v1alpha1.AnnotationTemplateKeys)

		return
	}

	if encoded, err := json.Marshal(now); err == nil {
		secret.Annotations[v1alpha1.AnnotationTemplateKeys] = string(encoded)
	}
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}

	return m
}

// mayWrite decides whether the controller writes to the namespace of the target. The API server has checked whether the
// user may.
func (r *reconciler) mayWrite(export *v1alpha1.OmniKubeconfigExport) loop.Outcome {
	target := export.EffectiveTarget()
	if r.serves(export, target.Namespace) {
		return loop.Proceed()
	}

	return loop.Stall(v1alpha1.ReasonNamespaceNotAllowed,
		"Secret %q is not written: its namespace is not one of --export-namespaces (controller.exportNamespaces in the chart), or "+
			"omni-controller found at its start that it may not handle Secrets there, see its log: add it, or choose another spec.targetSecretRef", target)
}

// serves reports whether the controller writes the export's Secrets in a namespace.
func (r *reconciler) serves(export *v1alpha1.OmniKubeconfigExport, namespace string) bool {
	return namespace == export.Namespace || slices.Contains(r.options.Namespaces, namespace)
}

// shown returns a Secret's name for messages.
func (s *scope) shown(secret metav1.Object) string { return shownTarget(s.export, keyOf(secret)) }

// shownTarget returns the name of an export's Secret for messages: with its namespace, if that is not the export's.
func shownTarget(export *v1alpha1.OmniKubeconfigExport, secret types.NamespacedName) string {
	if secret.Namespace == export.Namespace {
		return secret.Name
	}

	return secret.String()
}

// elsewhere returns a namespace in the form of the export's references: empty for its own.
func elsewhere(export *v1alpha1.OmniKubeconfigExport, namespace string) string {
	if namespace == export.Namespace {
		return ""
	}

	return namespace
}
