package omnikubeconfigexport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/clusteraccess"
	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/asynccache"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/index"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/loop"
	"omni.texashpc.com/omni-cluster-operator/pkg/reconcile/metrics"
	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

const (
	// probePause is how long a kubeconfig that was tried counts as working. The first try after a start, and that of a new kubeconfig,
	// comes at a time within it that differs from export to export.
	probePause = interval
	// shortProbePause is the same if somebody got a 401 with the kubeconfig since.
	shortProbePause = time.Minute
	// probeTimeout bounds one request to the proxy, and probeWait how long a worker waits for it.
	probeTimeout = 10 * time.Second
	probeWait    = time.Second
	// probesAtOnce is how many requests one Omni may have to answer at the same time.
	probesAtOnce = 4
	// keptAnswer is longer than any pause: what is asked again is another question.
	keptAnswer = 365 * 24 * time.Hour
)

// probe identifies one try of a kubeconfig.
type probe struct {
	uid    types.UID
	hash   string
	number int
}

// probes makes the requests outside of the runs.
type probes = asynccache.Cache[types.NamespacedName, probe, struct{}]

func newProbes(now func() time.Time, wake func(types.NamespacedName)) *probes {
	return asynccache.New(asynccache.Options[types.NamespacedName, probe, struct{}]{
		Limiter:       limiter.New(limiter.Limits[string]{PerKey: probesAtOnce}),
		AnswerTimeout: probeWait, QuestionTimeout: probeTimeout, Now: now, Wake: wake,
		Keep: func(asynccache.Question[probe], asynccache.Answer[struct{}]) time.Duration { return keptAnswer },
	})
}

// tryOut sends one request through Omni's Kubernetes proxy with the kubeconfig in the target, if it is time. It reports whether
// Omni deleted the key that signed it: then only a new kubeconfig helps. After any other refusal the kubeconfig stays, and the
// scope has what was said. A cluster that does not answer says nothing about the kubeconfig.
func (r *reconciler) tryOut(ctx context.Context, s *scope) (keyDeleted bool) {
	number, refused := r.requests.probe(s.export, s.found.hash, r.options.Now())
	if number == 0 {
		return false
	}

	plain := s.shape
	plain.format, plain.key = v1alpha1.FormatKubeconfig, cmp.Or(plain.key, v1alpha1.DefaultKubeconfigKey)

	data, err := plain.render(s.found.access)
	if err != nil {
		return false
	}

	answer, answered := r.probes.Ask(ctx, client.ObjectKeyFromObject(s.export), asynccache.Question[probe]{
		Key: probe{s.export.UID, s.found.hash, number}, Group: string(s.connection.UID),
	}, func(ctx context.Context, _ asynccache.Question[probe]) (struct{}, error) {
		err := clusteraccess.Look(ctx, data[plain.key], r.options.Guard)
		r.options.Kubeconfigs.CountCheck(resultOf(err))

		return struct{}{}, err
	})

	said := cmp.Or(clusteraccess.SaidBy(answer.Err), "the answer is 401 Unauthorized")

	switch {
	case !answered:
		s.refused = refused // until the answer is there
	case clusteraccess.KeyDeleted(answer.Err):
		wait := r.requests.replaceIn(s.export, s.found.hash, r.options.Now())
		if wait <= 0 {
			return true
		}

		s.refused = fmt.Sprintf("%s. It replaced one that was refused for the same; another one is made after %s", said, words.Time(r.options.Now().Add(wait)))
	case clusteraccess.Reason(answer.Err) == v1alpha1.ReasonUnauthenticated:
		s.refused = fmt.Sprintf("%s. It stays as it is and is tried again every %s; for another one, change spec.ttl", said, probePause)
	}

	r.requests.keepRefusal(s.export, s.refused)

	return false
}

// resultOf returns the result of a try for the metric.
func resultOf(err error) metrics.Check {
	switch {
	case err == nil:
		return metrics.CheckAccepted
	case clusteraccess.KeyDeleted(err):
		return metrics.CheckKeyDeleted
	case clusteraccess.Reason(err) == v1alpha1.ReasonUnauthenticated:
		return metrics.CheckRefused
	case errors.Is(err, clusteraccess.ErrUnsafe), errors.Is(err, clusteraccess.ErrInvalid):
		return metrics.CheckNotSent
	default:
		return metrics.CheckUnanswered
	}
}

// refusedBy says that Omni does not accept the kubeconfig in the target, and that a new one would not help, or not yet.
func refusedBy(s *scope) loop.Outcome {
	return loop.Wait(0, v1alpha1.ReasonUnauthenticated, "Omni does not accept the kubeconfig in Secret %q: %s", s.shown(s.secret), s.refused)
}

// refusedKubeconfig returns the exports whose target somebody got a 401 with: their kubeconfigs are tried soon.
func (r *reconciler) refusedKubeconfig(ctx context.Context, secret types.NamespacedName) []reconcile.Request {
	requests := r.exports(ctx, metav1.NamespaceAll, index.ByTargetSecret, secret.String())
	for _, request := range requests {
		r.requests.probeSoon(request.NamespacedName, r.options.Now())
	}

	return requests
}

// probeState is when the kubeconfig of an export is tried.
type probeState struct {
	hash    string
	number  int       // of the last try; 0 if there was none of this kubeconfig
	last    time.Time // of any kubeconfig
	next    time.Time
	refused string // of the last answer

	replaced   string // the kubeconfig that is replaced because its key was deleted
	replacedAt time.Time
}

// probe returns the number of the newest try of a kubeconfig, which may be one that begins now, or 0 if there is none yet; and what
// was said of its last answer, if that was a refusal.
func (r *requests) probe(export *v1alpha1.OmniKubeconfigExport, hash string, now time.Time) (number int, refused string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	state := &r.of(export).probe
	if state.hash != hash {
		state.hash, state.number, state.refused = hash, 0, ""
		state.next = now.Add(time.Duration(fraction(string(export.UID)+hash) * float64(probePause)))

		// A new process does not call it good before it knows.
		if written := apimeta.FindStatusCondition(export.Status.Conditions, v1alpha1.ConditionWritten); written != nil &&
			written.Reason == v1alpha1.ReasonUnauthenticated && hash == export.Status.KubeconfigHash {
			state.next = now
		}
	}

	if !now.Before(state.next) {
		state.number++
		state.last, state.next = now, now.Add(probePause)
	}

	return state.number, state.refused
}

// keepRefusal keeps what is said of a refusal of the kubeconfig of an export; empty if there was none.
func (r *requests) keepRefusal(export *v1alpha1.OmniKubeconfigExport, said string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.of(export).probe.refused = said
}

// probeSoon lets the next try of a kubeconfig begin now, or when shortProbePause is over.
func (r *requests) probeSoon(export types.NamespacedName, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	known := r.exports[export]
	if known == nil {
		return // the first run is still to come
	}

	soon := known.probe.last.Add(shortProbePause)
	if soon.Before(now) {
		soon = now
	}

	if soon.Before(known.probe.next) {
		known.probe.next = soon
	}
}

// nextProbe returns when the kubeconfig of an export is to be tried; zero if there is none.
func (r *requests) nextProbe(export types.NamespacedName) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()

	if known := r.exports[export]; known != nil {
		return known.probe.next
	}

	return time.Time{}
}

// replaceIn returns how long a kubeconfig whose key was deleted waits until it is replaced: only one is in probePause, so that a server
// that always says so does not get one after the other.
func (r *requests) replaceIn(export *v1alpha1.OmniKubeconfigExport, hash string, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	state := &r.of(export).probe
	if state.replaced == hash {
		return 0
	}

	if since := now.Sub(state.replacedAt); since >= 0 && since < probePause {
		return probePause - since
	}

	state.replaced, state.replacedAt = hash, now

	return 0
}
