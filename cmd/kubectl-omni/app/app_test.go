package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/fake"
	"omni.texashpc.com/omni-cluster-operator/pkg/generated/clientset/versioned/scheme"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/golden"
)

// today is when the tests run the commands.
var today = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// commandTimeout is how long a command may take.
const commandTimeout = await.Limit

// session is a user of the plugin before a fleet.
type session struct {
	t      *testing.T
	client *fake.Clientset
	raw    *dynamicfake.FakeDynamicClient
	meta   *metadatafake.FakeMetadataClient
	hub    *kubefake.Clientset
	input  string
	stdin  io.Reader // instead of input
}

func newSession(t *testing.T) *session {
	t.Helper()

	text, err := os.ReadFile("testdata/fleet.yaml")
	if err != nil {
		t.Fatal(err)
	}

	var objects []runtime.Object

	for _, document := range strings.Split(string(text), "\n---\n") {
		one, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatal(err)
		}

		objects = append(objects, one)
	}

	// The fake guesses the plural of a kind, and would guess that of OmniWorkers wrong.
	workers := slices.IndexFunc(objects, func(o runtime.Object) bool { _, is := o.(*v1alpha1.OmniWorkers); return is })
	client := fake.NewSimpleClientset(slices.Concat(objects[:workers], objects[workers+1:])...)

	lists := map[schema.GroupVersionResource]string{}
	for plural, kind := range map[string]string{
		"omniconnections": "OmniConnection", "omniclusters": "OmniCluster", "omnicontrolplanes": "OmniControlPlane", "omniworkers": "OmniWorkers",
		"omnimachines": "OmniMachine", "omnikubeconfigexports": "OmniKubeconfigExport", "omnisecretsyncs": "OmniSecretSync",
		"omnihelmreleases": "OmniHelmRelease", "omnirolloutpolicies": "OmniRolloutPolicy",
	} {
		lists[v1alpha1.SchemeGroupVersion.WithResource(plural)] = kind + "List"
	}

	var sent []runtime.Object
	for _, o := range slices.Concat(objects[:workers], objects[workers+1:]) {
		sent = append(sent, rawOf(t, o))
	}

	ofWorkers := v1alpha1.SchemeGroupVersion.WithResource("omniworkers")
	raw := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, sent...)

	if err = errors.Join(client.Tracker().Create(ofWorkers, objects[workers], "fleet"), raw.Tracker().Create(ofWorkers, rawOf(t, objects[workers]), "fleet")); err != nil {
		t.Fatal(err)
	}

	return &session{
		t: t, client: client, raw: raw, meta: metadataOf(t, objects),
		hub: kubefake.NewSimpleClientset(),
	}
}

// metadataOf is a client for the metadata of the OmniClusters among the objects.
func metadataOf(t *testing.T, objects []runtime.Object) *metadatafake.FakeMetadataClient {
	t.Helper()

	known := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}

	var found []runtime.Object

	for _, o := range objects {
		if cluster, is := o.(*v1alpha1.OmniCluster); is {
			one := &metav1.PartialObjectMetadata{ObjectMeta: cluster.ObjectMeta}
			one.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("OmniCluster"))
			found = append(found, one)
		}
	}

	return metadatafake.NewSimpleMetadataClient(known, found...)
}

// run types a command.
func (s *session) run(args ...string) (output, shown string, err error) {
	s.t.Helper()

	output, shown, _, err = s.execute(args...)

	return output, shown, err
}

// execute also returns the status that the process would have.
func (s *session) execute(args ...string) (output, shown string, status int, err error) {
	s.t.Helper()

	return s.executeUntil(s.t.Context(), args...)
}

// executeUntil runs a command that is interrupted when the context is done. It has to end then.
func (s *session) executeUntil(ctx context.Context, args ...string) (output, shown string, status int, err error) {
	s.t.Helper()

	var out, errOut bytes.Buffer

	if s.stdin == nil {
		s.stdin = strings.NewReader(s.input)
	}

	flags := genericclioptions.NewConfigFlags(true)
	namespace := "fleet"
	flags.Namespace = &namespace

	tool := &tool{
		IOStreams: genericiooptions.IOStreams{In: s.stdin, Out: &out, ErrOut: &errOut}, flags: flags, client: s.client, raw: s.raw, meta: s.meta, hub: s.hub,
		now: func() time.Time { return today },
	}

	command := tool.command()
	command.SetArgs(args)

	ended := make(chan struct{})

	var executed *cobra.Command

	go func() {
		defer close(ended)

		executed, err = command.ExecuteContextC(ctx)
	}()

	select {
	case <-ended:
		return out.String(), errOut.String(), statusOf(executed, err), err
	case <-time.After(commandTimeout):
		s.t.Fatalf("%v has not ended after %s", args, commandTimeout)

		return "", "", 0, nil
	}
}

func (s *session) cluster(name string) *v1alpha1.OmniCluster {
	s.t.Helper()

	cluster, err := s.client.OmniV1alpha1().OmniClusters("fleet").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}

	return cluster
}

// writes are the requests that change something.
func (s *session) writes() []string {
	var found []string

	for _, action := range s.client.Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			found = append(found, verb+" "+action.GetResource().Resource)
		}
	}

	return found
}

// What is shown, as it is: the pages of the documentation quote it.
func TestOutputs(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for name, args := range map[string][]string{
		"tree": {"tree", "edge-01"}, "tree-gaps": {"tree", "quiet"}, "status": {"status"}, "status-one": {"status", "edge-01"}, "plan": {"plan", "edge-01"},
		"plan-empty": {"plan", "quiet"}, "kubeconfig": {"kubeconfig", "edge-01"},
		"tree-json": {"tree", "edge-01", "-o", "json"}, "plan-yaml": {"plan", "edge-01", "-o", "yaml"}, "help": {"--help"}, "help-approve": {"approve", "--help"},
		"help-suspend": {"suspend", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", "/home/user")

			s := newSession(t)

			output, _, err := s.run(args...)
			if changes := args[0] == "plan" && args[1] == "edge-01"; (err != nil) != changes {
				t.Error(err)
			}

			if writes := s.writes(); len(writes) > 0 {
				t.Errorf("writes: %v", writes)
			}

			golden.Expect(t, filepath.Join("testdata", name+".txt"), output)
		})
	}
}

func TestOutputFormats(t *testing.T) {
	output, _, err := newSession(t).run("status", "edge-01", "-o", "jsonpath={.kind} {.status.rollout.hash}")
	if err != nil || output != "OmniCluster 9f3c" {
		t.Errorf("%q, %v", output, err)
	}

	for _, command := range []string{"tree", "plan"} {
		if output, _, err := newSession(t).run(command, "edge-01", "-o", "xml"); err == nil || !strings.Contains(err.Error(), "json or yaml") || output != "" {
			t.Errorf("%s: %q, %v", command, output, err)
		}
	}
}

func TestWrites(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for name, test := range map[string]struct {
		args    []string
		input   string
		refused string // part of the error; nothing is written then
		check   func(*session) (got, want any)
	}{
		"approve":                  {args: []string{"approve", "edge-01"}, input: "y\n", check: approved("5d0e")},
		"approve, no":              {args: []string{"approve", "edge-01"}, input: "\n", refused: "was not confirmed"},
		"approve, no terminal":     {args: []string{"approve", "edge-01"}, refused: "was not confirmed"},
		"approve by hash":          {args: []string{"approve", "edge-01", "--yes", "--hash", "5d0e"}, check: approved("5d0e")},
		"approve another hash":     {args: []string{"approve", "edge-01", "--yes", "--hash", "beef"}, refused: "the hash is 5d0e now"},
		"approve without the hash": {args: []string{"approve", "edge-01", "--yes"}, refused: "--yes needs --hash"},
		"approve nothing":          {args: []string{"approve", "quiet"}, input: "y\n", refused: "nothing waits for an approval"},
		"override": {
			args: []string{"override", "edge-01", "--reason", "the outage of tonight"}, input: "yes\n",
			check: annotated(v1alpha1.AnnotationRolloutOverride, "9f3c the outage of tonight"),
		},
		"override without a reason":    {args: []string{"override", "edge-01"}, input: "y\n", refused: `required flag(s) "reason" not set`},
		"override with a short reason": {args: []string{"override", "edge-01", "--reason", " because "}, input: "y\n", refused: "10 characters at least"},
		"override nothing":             {args: []string{"override", "quiet", "--reason", "the outage of tonight"}, input: "y\n", refused: "no changes of this cluster wait"},
		"promote": {args: []string{"promote", "production", "prod", "--for", "12h", "--yes"}, check: func(s *session) (got, want any) {
			return policyOf(s).Annotations[v1alpha1.AnnotationPromotePrefix+"prod"], "2026-11-24T00:00:00Z"
		}},
		"promote what begins by itself": {args: []string{"promote", "production", "canary", "--yes"}, refused: "is the first one"},
		"promote too long":              {args: []string{"promote", "production", "prod", "--for", "169h", "--yes"}, refused: "at most 168h"},
		"promote no stage":              {args: []string{"promote", "production", "stage", "--yes"}, refused: `has no stage "stage"`},
		"hold":                          {args: []string{"hold", "production"}, check: func(s *session) (got, want any) { return policyOf(s).Spec.Hold, true }},
		"suspend":                       {args: []string{"suspend", "edge-01"}, check: func(s *session) (got, want any) { return s.cluster("edge-01").Spec.Suspend, true }},
		"reconcile":                     {args: []string{"reconcile", "edge-01"}, check: annotated(v1alpha1.AnnotationReconcileRequestedAt, "2026-11-23T12:00:00Z")},
		"a cluster that is not there":   {args: []string{"suspend", "edge-99"}, refused: "not found"},
		"resume a release": {args: []string{"resume", "release/monitoring"}, check: func(s *session) (got, want any) {
			release, err := s.client.OmniV1alpha1().OmniHelmReleases("fleet").Get(s.t.Context(), "monitoring", metav1.GetOptions{})
			if err != nil {
				s.t.Fatal(err)
			}

			return release.Spec.Suspend, false
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			s.input = test.input

			_, _, err := s.run(test.args...)

			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) || len(s.writes()) > 0 {
					t.Errorf("%v, writes %v", err, s.writes())
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			if got, want := test.check(s); got != want || len(s.writes()) != 1 {
				t.Errorf("%v, want %v; writes %v", got, want, s.writes())
			}
		})
	}
}

// The same changes wait again, and are overridden again for the same reason. The API server records a value that changes.
func TestOverrideAgain(t *testing.T) {
	s := newSession(t)

	const value = "9f3c the outage of tonight"

	cluster := s.cluster("edge-01")
	cluster.Annotations = map[string]string{v1alpha1.AnnotationRolloutOverride: value}
	s.put("omniclusters", cluster)

	if _, _, err := s.run("override", "edge-01", "--reason", "the outage of tonight", "--yes", "--hash", "9f3c"); err != nil {
		t.Fatal(err)
	}

	if s.cluster("edge-01").Annotations[v1alpha1.AnnotationRolloutOverride] != value || len(s.writes()) != 2 {
		t.Errorf("writes: %v", s.writes())
	}
}

// What a cluster waits for stands first in its line, and whole: the changes and the command have their place on its screen.
func TestWaitsFor(t *testing.T) {
	for _, test := range []struct{ condition, message, want string }{
		{v1alpha1.ConditionStalled, "OmniWorkers w (it has 3): Omni refuses this", "OmniWorkers w (it has 3): Omni refuses this"},
		{
			v1alpha1.ConditionHeld, "1 of 3 changes waits (KubernetesVersion v1.35.1 -> v1.36.1): until somebody promotes the stage: kubectl omni promote production prod",
			"until somebody promotes the stage",
		},
	} {
		if got := firstOf(test.condition, test.message); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A promotion that ends before the stage opens is written, if the user insists: the windows may change meanwhile.
func TestPromotionBeforeTheWindow(t *testing.T) {
	for length, warns := range map[string]bool{"24h": true, "117h": true, "118h": false} {
		s := newSession(t)
		opens := metav1.NewTime(today.Add(117 * time.Hour))

		policy := policyOf(s).DeepCopy()
		policy.Status.Stages = []v1alpha1.RolloutStageStatus{{Name: "canary", Open: true, NextChange: &opens}, {Name: "prod", NextChange: &opens}}
		s.put("omnirolloutpolicies", policy)

		_, shown, err := s.run("promote", "production", "prod", "--for", length, "--yes")
		if err != nil || len(s.writes()) != 1 || strings.Contains(shown, "Warning: stage prod opens 2026-11-28T09:00:00Z") != warns {
			t.Errorf("%s: %v, writes %v, shown %q", length, err, s.writes(), shown)
		}
	}
}

// A status that the controller writes while the user decides is no conflict; another object of the name is.
func TestWritesNameTheObject(t *testing.T) {
	s := newSession(t)

	if _, _, err := s.run("suspend", "edge-01"); err != nil {
		t.Fatal(err)
	}

	for _, action := range s.client.Actions() {
		if patch, is := action.(clienttesting.PatchAction); is {
			if want := `{"metadata":{"uid":"edge-01-uid"},"spec":{"suspend":true}}`; string(patch.GetPatch()) != want {
				t.Errorf("%s, want %s", patch.GetPatch(), want)
			}
		}
	}
}

// put replaces an object of the fleet, not as the user.
func (s *session) put(resource string, o runtime.Object) {
	s.t.Helper()

	at := v1alpha1.SchemeGroupVersion.WithResource(resource)
	if err := errors.Join(s.client.Tracker().Update(at, o, "fleet"), s.raw.Tracker().Update(at, rawOf(s.t, o), "fleet")); err != nil {
		s.t.Fatal(err)
	}
}

// refuse answers every list of a resource, or of all for "*", with an error.
func (s *session) refuse(resource string, err error) {
	fails := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	s.client.PrependReactor("list", resource, fails)
	s.raw.PrependReactor("list", resource, fails)
}

// rawOf is an object as the server sends it.
func rawOf(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()

	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: fields}
}

// What kubectl asks the executable kubectl_complete-omni of the page, the plugin answers. Of the clusters it reads the metadata only.
func TestCompletion(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))

	for want, args := range map[string][]string{
		"edge-01\n:4\n":   {"status", "ed"},
		"approve\t":       {"appr"},
		"--for\tHow long": {"promote", "production", "prod", "--f"},
	} {
		s := newSession(t)

		if output, _, err := s.run(append([]string{cobra.ShellCompRequestCmd}, args...)...); err != nil || !strings.Contains(output, want) {
			t.Errorf("%v: %v, no %q in\n%s", args, err, want, output)
		}

		if read := slices.Concat(s.client.Actions(), s.raw.Actions()); len(read) > 0 {
			t.Errorf("%v: reads whole objects: %v", args, read)
		}
	}
}

// Every example of --help is a command line that the plugin understands.
func TestExamples(t *testing.T) {
	root := NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	seen := 0

	for _, command := range root.Commands() {
		for line := range strings.Lines(command.Example) {
			words, isCommand := strings.CutPrefix(strings.TrimSpace(line), "kubectl omni ")
			if !isCommand {
				continue
			}

			seen++
			words = strings.NewReplacer(`"$hash"`, "5d0e", `"the fix for tonight's outage"`, "outage").Replace(words)

			found, rest, err := root.Find(strings.Fields(words))
			if err != nil || found != command {
				t.Errorf("%s: %v", line, err)

				continue
			}

			if err = found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
			}

			if err = found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}

		if (command.GroupID == groupLook || command.GroupID == groupDecide) && command.Example == "" {
			t.Errorf("%s has no example", command.Name())
		}
	}

	if seen < 10 {
		t.Errorf("only %d examples", seen)
	}
}

// Every flag of the commands that move stands on the page, in the section of its command.
func TestFlagsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/kubectl-omni.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, command := range NewCommand(genericiooptions.NewTestIOStreamsDiscard()).Commands() {
		_, section, _ := strings.Cut(string(page), "\n## "+command.Name()+"\n")
		section, _, _ = strings.Cut(section, "\n## ")

		for _, one := range append(command.Commands(), command) {
			one.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
				if command.GroupID == groupMove && flag.Name != "help" && !strings.Contains(section, "`--"+flag.Name+"`") {
					t.Errorf("%s: --%s is not on the page", one.CommandPath(), flag.Name)
				}
			})
		}
	}
}

// The page of the documentation shows what the golden files have.
func TestPage(t *testing.T) {
	const page = "../../../docs/reference/kubectl-omni.md"

	template, err := os.ReadFile("testdata/page.md")
	if err != nil {
		t.Fatal(err)
	}

	want := string(template)

	for _, name := range []string{"tree", "status", "status-one", "plan"} {
		output, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}

		want = strings.Replace(want, "@@"+name+"@@\n", string(output), 1)
	}

	golden.Expect(t, page, want)
}
