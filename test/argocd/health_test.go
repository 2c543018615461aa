package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kinds are all kinds of the group.
func kinds() []string {
	return []string{
		"OmniConnection", "OmniCluster", "OmniControlPlane", "OmniWorkers",
		"OmniMachine", "OmniKubeconfigExport", "OmniSecretSync", "OmniHelmRelease", "OmniRolloutPolicy",
	}
}

// states are what every kind can say, as the API server stores it: what is in metadata beside the
// name, the status, and what Argo CD is to show.
var states = []struct {
	name, metadata, status string
	want                   Health
}{
	{
		"no status at all", `"generation":1`, ``,
		Health{Progressing, "no controller has looked at this object yet"},
	},
	{
		"empty status", `"generation":1`, `{}`,
		Health{Progressing, "no controller has looked at this object yet"},
	},
	{
		"new", `"generation":1`,
		`{"observedGeneration":-1,"conditions":[` + condition("Ready", "Unknown", "Pending", "waits for the controller") + `,` +
			condition("Reconciling", "True", "Pending", "waits for the controller") + `]}`,
		Health{Progressing, "no controller has looked at this object yet"},
	},
	{
		"finished", `"generation":3`,
		`{"observedGeneration":3,"conditions":[` + condition("Synced", "True", "Applied", "") + `,` + condition("Ready", "True", "Running", "it runs") + `]}`,
		Health{Healthy, "Running: it runs"},
	},
	{
		"finished, without a message", `"generation":3`,
		`{"observedGeneration":3,"conditions":[` + condition("Ready", "True", "Succeeded", "") + `]}`,
		Health{Healthy, "Succeeded"},
	},
	{
		"changed since", `"generation":4`,
		`{"observedGeneration":3,"conditions":[` + condition("Ready", "True", "Running", "it runs") + `]}`,
		Health{Progressing, "the controller has not seen the last change yet (generation 4, seen 3)"},
	},
	{
		"stalled, and changed since: the change may be the remedy", `"generation":4`,
		`{"observedGeneration":3,"conditions":[` + condition("Ready", "False", "NotOwned", "x") + `,` + condition("Stalled", "True", "NotOwned", "x") + `]}`,
		Health{Progressing, "the controller has not seen the last change yet (generation 4, seen 3)"},
	},
	{
		"at work", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "WaitingForMachines", "1 of 3") + `,` + condition("Reconciling", "True", "WaitingForMachines", "1 of 3") + `]}`,
		Health{Progressing, "WaitingForMachines: 1 of 3"},
	},
	{
		"stalled", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "NotOwned", "it is made by hand") + `,` + condition("Stalled", "True", "NotOwned", "it is made by hand") + `]}`,
		Health{Degraded, "NotOwned: it is made by hand"},
	},
	{
		"a plan waits for approval", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "AwaitingApproval", "approve it") + `,` + condition("Stalled", "True", "AwaitingApproval", "approve it") + `]}`,
		Health{Suspended, "AwaitingApproval: approve it"},
	},
	{
		"observed only", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "Observing", "2 changes") + `,` + condition("Stalled", "True", "Observing", "2 changes") + `]}`,
		Health{Suspended, "Observing: 2 changes"},
	},
	{
		"a document whose cluster waits for a person", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "ClusterOnHold", "approve it") + `,` + condition("Reconciling", "True", "ClusterOnHold", "approve it") + `]}`,
		Health{Suspended, "ClusterOnHold: approve it"},
	},
	{
		"a release whose cluster is suspended", `"generation":1`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "False", "ClusterSuspended", "resume it") + `,` + condition("Reconciling", "True", "ClusterSuspended", "resume it") + `]}`,
		Health{Suspended, "ClusterSuspended: resume it"},
	},
	{
		"suspended while it runs", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "True", "Running", "it runs") + `,` + condition("Suspended", "True", "Suspended", "nothing is changed") + `]}`,
		Health{Suspended, "Suspended: nothing is changed"},
	},
	{
		"suspended with a plan", `"generation":2`,
		`{"observedGeneration":2,"plan":{"creates":1,"destroys":12},"conditions":[` + condition("Ready", "True", "Running", "it runs") + `,` + condition("Suspended", "True", "Suspended", "nothing is changed") + `]}`,
		Health{Suspended, "Suspended: nothing is changed; the plan has 1 to create, 0 to update, 12 to destroy"},
	},
	{
		"changes that wait for their turn", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Synced", "False", "Held", "x") + `,` + condition("Ready", "True", "Running", "it runs") + `,` +
			condition("Held", "True", "OutsideWindow", "1 of 3 changes waits") + `]}`,
		Health{Healthy, "OutsideWindow: 1 of 3 changes waits; Running: it runs"},
	},
	{
		"changes that wait for their turn, in a cluster that is not well", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "False", "NotRunning", "1 of 3") + `,` + condition("Reconciling", "True", "NotRunning", "1 of 3") + `,` +
			condition("Held", "True", "ClusterNotReady", "1 of 3 changes waits") + `]}`,
		Health{Progressing, "NotRunning: 1 of 3"},
	},
	{
		"a rollout that stopped", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "True", "InForce", "in force") + `,` + condition("RolloutStopped", "True", "TooManyFailed", "1 failed (maxFailed is 0): a") + `]}`,
		Health{Degraded, "TooManyFailed: 1 failed (maxFailed is 0): a"},
	},
	{
		"a condition that is not true does not count", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Suspended", "False", "x", "") + `,` + condition("Stalled", "False", "x", "") + `,` +
			condition("Reconciling", "Unknown", "x", "") + `,` + condition("Ready", "True", "Running", "") + `]}`,
		Health{Healthy, "Running"},
	},
	{
		"neither ready nor anything else", `"generation":2`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "False", "Error", "connection reset") + `]}`,
		Health{Progressing, "Error: connection reset"},
	},
	{
		"no condition Ready", `"generation":2`, `{"observedGeneration":2}`,
		Health{Progressing, "the controller has not said yet whether the object is ready"},
	},
	{
		"being deleted", `"generation":2,"deletionTimestamp":"2026-11-21T12:00:00Z"`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "False", "Deleting", "2 machines left") + `,` + condition("Reconciling", "True", "Deleting", "2 machines left") + `]}`,
		Health{Progressing, "Deleting: 2 machines left"},
	},
	{
		"being deleted, and blocked", `"generation":2,"deletionTimestamp":"2026-11-21T12:00:00Z"`,
		`{"observedGeneration":2,"conditions":[` + condition("Ready", "False", "RemoteLocked", "unlock it") + `,` + condition("DeletionBlocked", "True", "RemoteLocked", "unlock it") + `]}`,
		Health{Progressing, "RemoteLocked: unlock it"},
	},
	{
		"being deleted, not begun", `"generation":2,"deletionTimestamp":"2026-11-21T12:00:00Z"`,
		`{"observedGeneration":1,"conditions":[` + condition("Ready", "True", "Running", "it runs") + `]}`,
		Health{Progressing, "the object is being deleted; the controller has not begun yet"},
	},
	{
		"being deleted, never seen", `"generation":2,"deletionTimestamp":"2026-11-21T12:00:00Z"`, ``,
		Health{Progressing, "the object is being deleted"},
	},
}

func condition(name, status, reason, message string) string {
	return fmt.Sprintf(`{"type":%q,"status":%q,"reason":%q,"message":%q,"observedGeneration":1,"lastTransitionTime":"2026-11-21T12:00:00Z"}`,
		name, status, reason, message)
}

func object(t *testing.T, kind, metadata, status string) map[string]any {
	t.Helper()

	if status != "" {
		status = `,"status":` + status
	}

	parsed := &unstructured.Unstructured{}
	if err := parsed.UnmarshalJSON([]byte(`{"apiVersion":"omni.texashpc.com/v1alpha1","kind":"` + kind +
		`","metadata":{"name":"c",` + metadata + `},"spec":{"list":[1,2.5,true,null]}` + status + `}`)); err != nil {
		t.Fatal(err)
	}

	return parsed.Object
}

func TestHealth(t *testing.T) {
	script, err := Load()
	if err != nil {
		t.Fatal(err)
	}

	for _, kind := range kinds() {
		for _, state := range states {
			t.Run(kind+"/"+state.name, func(t *testing.T) {
				got, err := script.Run(t.Context(), object(t, kind, state.metadata, state.status))
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(state.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			})
		}
	}
}

// The variant that how-to/gitops.md offers: one word of the script is another, and whatever waits for a person ends the sync.
func TestHealthThatEndsASync(t *testing.T) {
	script, err := Load()
	if err != nil {
		t.Fatal(err)
	}

	const setting = `local waits_for_a_person = "Suspended"`
	if strings.Count(script.text, setting) != 1 {
		t.Fatalf("the script does not hold %s once", setting)
	}

	script = NewScript(strings.Replace(script.text, setting, `local waits_for_a_person = "Degraded"`, 1))

	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			got, err := script.Run(t.Context(), object(t, "OmniCluster", state.metadata, state.status))
			if err != nil {
				t.Fatal(err)
			}

			want := state.want
			if want.Status == Suspended {
				want.Status = Degraded
			}

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Objects decoded with json.Number, as some versions of Argo CD do, have text where the number is.
func TestNumbersAsText(t *testing.T) {
	script, err := Load()
	if err != nil {
		t.Fatal(err)
	}

	got, err := script.Run(t.Context(), map[string]any{
		"metadata": map[string]any{"generation": "10"},
		"status":   map[string]any{"observedGeneration": "9"},
	})
	if err != nil {
		t.Fatal(err)
	}

	if got.Status != Progressing || !strings.Contains(got.Message, "(generation 10, seen 9)") {
		t.Errorf("%+v", got)
	}
}

// What Argo CD would not take is an error here.
func TestScriptsThatArgoWouldNotTake(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"no table":            {`return "Healthy"`, "not a table"},
		"another word":        {`return { status = "Ready" }`, `status "Ready"`},
		"no word":             {`return {}`, `status ""`},
		"an error":            {`return obj.status.conditions`, "attempt to index"},
		"a library":           {`return { status = string.format("Healthy") }`, "attempt to index"},
		"does not end":        {`while true do end`, "deadline"},
		"not in the language": {`return {`, "run the health script"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()

			if name == "does not end" {
				var cancel context.CancelFunc

				ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
			}

			_, err := NewScript(tc.script).Run(ctx, map[string]any{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v", err)
			}
		})
	}

	if _, err := NewScript(`return {}`).Run(t.Context(), map[string]any{"generation": json.Number("1")}); err == nil {
		t.Error("a json.Number was accepted; unstructured objects have none")
	}
}
