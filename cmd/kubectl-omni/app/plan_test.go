package app

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// A status lists 50 changes at most. An override opens all that wait: whoever has not seen them all has to name their hash.
func TestOverrideOfUnlistedChanges(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for name, test := range map[string]struct {
		omitted, held int32
		args          []string
		says          string // what the user is shown
		refused       string
	}{
		"a question is not enough": {omitted: 12, held: 13, refused: "12 of the 13 changes that wait are not listed: to let them begin, too, repeat this with --hash 9f3c"},
		"with the hash it asks":    {omitted: 12, held: 13, args: []string{"--hash", "9f3c"}, says: "Let these 13 changes, 12 of which are not listed, of cluster edge-01 begin now (hash 9f3c)?"},
		"with the hash, and yes":   {omitted: 12, held: 13, args: []string{"--hash", "9f3c", "--yes"}, says: "... and 12 more that are not listed\n"},
		"another hash":             {omitted: 12, held: 13, args: []string{"--hash", "beef", "--yes"}, refused: "the hash is 9f3c now"},
		"none of the others waits": {omitted: 12, held: 1, says: "Let this change of cluster edge-01 begin now (hash 9f3c)?"},
	} {
		s := newSession(t)
		s.input = "y\n"

		large := s.cluster("edge-01").DeepCopy()
		large.Status.Plan.OmittedChanges, large.Status.Plan.Held = test.omitted, test.held
		s.put("omniclusters", large)

		_, shown, err := s.run(append([]string{"override", "edge-01", "--reason", "the outage of tonight"}, test.args...)...)

		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) || len(s.writes()) > 0 {
				t.Errorf("%s: %v, writes %v", name, err, s.writes())
			}

			continue
		}

		if err != nil || len(s.writes()) != 1 || !strings.Contains(shown, test.says) {
			t.Errorf("%s: %v, writes %v, shown\n%s", name, err, s.writes(), shown)
		}
	}
}

// Changes that no policy holds begin at once: whoever expects one to hold them finds out here. The user's own rights decide
// what can be said.
func TestPlanWithoutPolicy(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	const none = "\nNo OmniRolloutPolicy selects this cluster.\n"

	selects := func(labels map[string]string) func(*session) {
		return func(s *session) {
			policy := policyOf(s).DeepCopy()
			policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchLabels: labels}
			s.put("omnirolloutpolicies", policy)
		}
	}
	fails := func(err error) func(*session) {
		return func(s *session) {
			s.client.PrependReactor("list", "omnirolloutpolicies", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}

	for name, test := range map[string]struct {
		prepare func(*session)
		args    []string
		says    string
		silent  string
	}{
		"another cluster's policy": {prepare: selects(map[string]string{"tier": "prod"}), says: none},
		"a policy for all":         {prepare: selects(nil), silent: "No OmniRolloutPolicy"},
		"no policy": {prepare: func(s *session) {
			if err := s.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("omnirolloutpolicies"), "fleet", "production"); err != nil {
				s.t.Fatal(err)
			}
		}, says: none},
		"a policy that cannot be read": {prepare: func(s *session) {
			policy := policyOf(s).DeepCopy()
			policy.Spec.ClusterSelector = &v1alpha1.ClusterSelector{MatchExpressions: []v1alpha1.ClusterSelectorRequirement{{Key: "tier", Operator: "Unheard"}}}
			s.put("omnirolloutpolicies", policy)
		}, silent: "No OmniRolloutPolicy"},
		"no changes":   {prepare: selects(map[string]string{"tier": "prod"}), args: []string{"plan", "quiet"}, silent: "OmniRolloutPolicy"},
		"for programs": {prepare: selects(map[string]string{"tier": "prod"}), args: []string{"plan", "edge-01", "-o", "yaml"}, silent: "OmniRolloutPolicy"},
		"no right to list": {
			prepare: fails(apierrors.NewForbidden(v1alpha1.Resource("omnirolloutpolicies"), "", errors.New("no"))),
			says:    "\nWhether an OmniRolloutPolicy selects this cluster is not known: Forbidden\n",
		},
		"an older server": {
			prepare: fails(apierrors.NewGenericServerResponse(http.StatusNotFound, "list", v1alpha1.Resource("omnirolloutpolicies"), "", "404 page not found", 0, true)),
			silent:  "OmniRolloutPolicy selects",
		},
	} {
		s := newSession(t)
		test.prepare(s)

		if test.args == nil {
			test.args = []string{"plan", "edge-01"}
		}

		output, _, err := s.run(test.args...)
		if !strings.Contains(output, test.says) || test.silent != "" && strings.Contains(output, test.silent) || err != nil && !errors.Is(err, errChanges) {
			t.Errorf("%s: %v\n%s", name, err, output)
		}
	}
}

// Without a plan of the object as it is, what is left to do is not known: that is an error, which says why, and nothing on
// standard output that a program could take for an answer.
func TestNoCurrentPlan(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for name, test := range map[string]struct {
		change func(*v1alpha1.OmniCluster)
		says   string
	}{
		"a new generation": {
			change: func(o *v1alpha1.OmniCluster) { o.Generation++ },
			says:   "the controller has not looked at generation 4 of cluster edge-01 yet",
		},
		"the template is invalid": {
			change: func(o *v1alpha1.OmniCluster) {
				o.Status.Plan = nil
				setCondition(o, v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonTemplateInvalid, "patch cni is no YAML")
				setCondition(o, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTemplateInvalid, "patch cni is no YAML")
			},
			says: "patch cni is no YAML (TemplateInvalid)",
		},
		"no control plane": {
			change: func(o *v1alpha1.OmniCluster) {
				o.Status.Plan = nil
				setCondition(o, v1alpha1.ConditionPlanned, metav1.ConditionUnknown, v1alpha1.ReasonBlocked, "waits for Assembled")
				setCondition(o, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneMissing, "no OmniControlPlane names it")
			},
			says: "no OmniControlPlane names it (ControlPlaneMissing)",
		},
		"Omni is away, and there is an old plan": {
			change: func(o *v1alpha1.OmniCluster) {
				setCondition(o, v1alpha1.ConditionPlanned, metav1.ConditionUnknown, v1alpha1.ReasonBlocked, "waits for ConnectionReady")
				setCondition(o, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonConnectionNotReady, "Omni does not answer")
			},
			says: "Omni does not answer (ConnectionNotReady)",
		},
		"suspended, and the template is invalid": {
			change: func(o *v1alpha1.OmniCluster) { // Ready stays as it was when it was suspended
				o.Spec.Suspend = true
				setCondition(o, v1alpha1.ConditionPlanned, metav1.ConditionFalse, v1alpha1.ReasonTemplateInvalid, "patch cni is no YAML")
				setCondition(o, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRunning, "Omni runs the cluster")
			},
			says: "patch cni is no YAML (TemplateInvalid)",
		},
		"being deleted": {
			change: func(o *v1alpha1.OmniCluster) {
				setCondition(o, v1alpha1.ConditionPlanned, metav1.ConditionUnknown, v1alpha1.ReasonDeleting, "not looked at")
				setCondition(o, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "2 machines leave")
			},
			says: "2 machines leave (Deleting)",
		},
		"planned for an older generation": {
			change: func(o *v1alpha1.OmniCluster) { o.Generation, o.Status.ObservedGeneration = 4, 4 },
			says:   "2 changes wait for an approval (AwaitingApproval)",
		},
		"no conditions": {
			change: func(o *v1alpha1.OmniCluster) { o.Status.Conditions = nil },
			says:   "the controller has not looked at it yet",
		},
	} {
		for _, args := range [][]string{
			{"plan", "edge-01"}, {"plan", "edge-01", "-o", "json"}, {"approve", "edge-01"}, {"override", "edge-01", "--reason", "the outage of tonight"},
		} {
			s := newSession(t)
			s.input = "y\n"

			changed := s.cluster("edge-01").DeepCopy()
			test.change(changed)
			s.put("omniclusters", changed)

			output, _, err := s.run(args...)
			if err == nil || errors.Is(err, errChanges) || !strings.Contains(err.Error(), test.says) || output != "" || len(s.writes()) > 0 {
				t.Errorf("%s, %v: %v, want %q; writes %v, printed\n%s", name, args, err, test.says, s.writes(), output)
			}
		}
	}
}

// An empty plan says that nothing is left only if it was made of the documents as they are: of each of them the cluster's status
// has the generation that it counted.
func TestEmptyPlanOfOlderDocuments(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	refuses := func(resource string) func(*session) {
		return func(s *session) {
			s.client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(v1alpha1.Resource(resource), "", errors.New("no"))
			})
		}
	}
	deletes := func(resource, name string) func(*session) {
		return func(s *session) {
			if err := s.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource(resource), "fleet", name); err != nil {
				s.t.Fatal(err)
			}
		}
	}

	for name, test := range map[string]struct {
		change func(*session)
		says   string // empty: nothing is left
	}{
		"nothing has changed": {change: func(*session) {}},
		"workers": {
			change: func(s *session) { s.workers(func(o *v1alpha1.OmniWorkers) { o.Generation++ }) },
			says:   "the controller has not looked at generation 3 of OmniWorkers edge-01-workers yet, so what is left to do is not known",
		},
		"workers that were made again": {
			change: func(s *session) { s.workers(func(o *v1alpha1.OmniWorkers) { o.UID = "another" }) },
			says:   "the controller has not looked at generation 2 of OmniWorkers edge-01-workers yet",
		},
		"workers that do not count": {change: func(s *session) { s.extraWorkers("edge-01", metav1.ConditionFalse, 3) }},
		"workers that did not count": {
			change: func(s *session) { s.extraWorkers("edge-01", metav1.ConditionFalse, 2) }, says: "generation 3 of OmniWorkers extra",
		},
		"new workers":                {change: func(s *session) { s.extraWorkers("edge-01", metav1.ConditionTrue, 3) }, says: "generation 3 of OmniWorkers extra"},
		"workers of another cluster": {change: func(s *session) { s.extraWorkers("quiet", metav1.ConditionUnknown, 3) }},
		"workers are being deleted": {
			change: func(s *session) {
				s.workers(func(o *v1alpha1.OmniWorkers) {
					o.Generation, o.DeletionTimestamp, o.Finalizers = 3, new(metav1.Now()), []string{"a/b"}
				})
			},
			says: "the deletion of OmniWorkers edge-01-workers",
		},
		"workers are deleted": {
			change: deletes("omniworkers", "edge-01-workers"), says: "the controller has not looked at the deletion of OmniWorkers edge-01-workers yet",
		},
		"the control plane is deleted": {change: deletes("omnicontrolplanes", "edge-01-cp"), says: "the deletion of OmniControlPlane edge-01-cp"},
		"a machine is deleted": {
			change: deletes("omnimachines", "22222222-2222-4222-8222-222222222222"), says: "the deletion of OmniMachine 22222222-2222-4222-8222-222222222222",
		},
		"machines cannot be read": {
			change: refuses("omnimachines"), says: "whether an OmniMachine has changed since, and so what is left to do, is not known: Forbidden",
		},
	} {
		for _, args := range [][]string{{"plan", "edge-01"}, {"plan", "edge-01", "-o", "json"}} {
			s := newSession(t)
			s.settle()
			test.change(s)

			output, _, status, err := s.execute(args...)
			if test.says == "" && (err != nil || status != 0) {
				t.Errorf("%s, %v: %v", name, args, err)
			}

			if test.says != "" && (status != 2 || !strings.Contains(err.Error(), test.says) || output != "") {
				t.Errorf("%s, %v: status %d, %v, want %q; printed\n%s", name, args, status, err, test.says, output)
			}
		}
	}
}

// settle leaves nothing to do for cluster edge-01, whose documents are all counted.
func (s *session) settle() {
	s.t.Helper()

	ref := func(name string) v1alpha1.AppliedReference {
		return v1alpha1.AppliedReference{Name: name, UID: name + "-uid", Generation: 2}
	}

	settled := s.cluster("edge-01").DeepCopy()
	settled.Status.Plan = nil
	settled.Status.ControlPlaneRef = new(ref("edge-01-cp"))
	settled.Status.WorkersRefs = []v1alpha1.AppliedReference{ref("edge-01-workers")}
	settled.Status.MachineRefs = []v1alpha1.AppliedReference{ref("11111111-1111-4111-8111-111111111111"), ref("22222222-2222-4222-8222-222222222222")}
	s.put("omniclusters", settled)
}

// workers changes the workers of cluster edge-01.
func (s *session) workers(change func(*v1alpha1.OmniWorkers)) {
	s.t.Helper()

	workers, err := s.client.OmniV1alpha1().OmniWorkers("fleet").Get(s.t.Context(), "edge-01-workers", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}

	workers = workers.DeepCopy()
	change(workers)
	s.put("omniworkers", workers)
}

// extraWorkers makes workers of a cluster, of generation 3, which were or were not accepted at a generation.
func (s *session) extraWorkers(cluster string, accepted metav1.ConditionStatus, generation int64) {
	s.t.Helper()

	extra := &v1alpha1.OmniWorkers{ObjectMeta: metav1.ObjectMeta{Name: "extra", Namespace: "fleet", UID: "extra-uid", Generation: 3}}
	extra.Spec.ClusterRef.Name = cluster
	extra.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: accepted, ObservedGeneration: generation}}

	if err := s.client.Tracker().Create(v1alpha1.SchemeGroupVersion.WithResource("omniworkers"), extra, "fleet"); err != nil {
		s.t.Fatal(err)
	}
}

// A script tells changes from errors by the status, as it can with kubectl diff.
func TestPlanStatus(t *testing.T) {
	s, done := newSession(t), newSession(t)

	done.settle()

	if _, _, status, err := done.execute("plan", "edge-01"); status != 0 {
		t.Errorf("nothing is left to do: status %d (%v)", status, err)
	}

	for _, test := range []struct {
		args []string
		want int
	}{
		{[]string{"plan", "edge-01"}, 1},
		{[]string{"plan", "edge-01", "-o", "json"}, 1},
		{[]string{"plan", "missing"}, 2},
		{[]string{"plan"}, 2},
		{[]string{"plan", "edge-01", "--no-such-flag"}, 2},
		{[]string{"approve", "missing"}, 1},
		{[]string{"no-such-command"}, 1},
		{[]string{"migrate", "plan", "--no-such-flag"}, 1},
		{[]string{"plan", "--help"}, 0},
	} {
		if _, _, status, err := s.execute(test.args...); status != test.want {
			t.Errorf("%v: status %d, want %d (%v)", test.args, status, test.want, err)
		}
	}
}

func setCondition(o *v1alpha1.OmniCluster, name string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&o.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message, ObservedGeneration: o.Generation,
	})
}

// The screen of a cluster shows the last plan while Omni is away, and says that it is not the current one.
func TestStatusMarksAnOldPlan(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	s := newSession(t)
	changed := s.cluster("edge-01").DeepCopy()
	setCondition(changed, v1alpha1.ConditionPlanned, metav1.ConditionUnknown, v1alpha1.ReasonBlocked, "waits for ConnectionReady")
	s.put("omniclusters", changed)

	const want = "1 to update, 2 to destroy; 1 held (of an earlier run: there is no current plan)"
	if output, _, err := s.run("status", "edge-01"); err != nil || !strings.Contains(output, want) {
		t.Errorf("%v, want %q in\n%s", err, want, output)
	}
}

// A plan that stays because of the object's own spec says so.
func TestPlanSaysWhatStopsIt(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for want, change := range map[string]func(*v1alpha1.OmniClusterSpec){
		"\nSuspended, so nothing is changed: kubectl omni resume edge-01 -n fleet\n": func(spec *v1alpha1.OmniClusterSpec) { spec.Suspend = true },
		"\nspec.changePolicy is Observe, so nothing is changed.\n":                   func(spec *v1alpha1.OmniClusterSpec) { spec.ChangePolicy = v1alpha1.ChangePolicyObserve },
	} {
		s := newSession(t)
		cluster := s.cluster("edge-01").DeepCopy()
		change(&cluster.Spec)
		s.put("omniclusters", cluster)

		if output, _, err := s.run("plan", "edge-01"); !errors.Is(err, errChanges) || !strings.Contains(output, want) {
			t.Errorf("%v, want %q in\n%s", err, want, output)
		}
	}
}
