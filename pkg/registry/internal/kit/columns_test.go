package kit

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

func TestTimes(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *metav1.Time {
		moment := metav1.NewTime(now.Add(d))

		return &moment
	}

	tests := []struct {
		name         string
		moment       *metav1.Time
		until, since string
	}{
		{"unknown", nil, "<none>", "<none>"},
		{"zero", &metav1.Time{}, "<none>", "<none>"},
		{"tomorrow", at(24 * time.Hour), "in 24h", "<invalid>"},
		{"next year", at(400 * 24 * time.Hour), "in 400d", "<invalid>"},
		{"a minute ago", at(-time.Minute), "60s ago", "60s"},
		{"now", at(0), "0s ago", "0s"},
	}
	for _, test := range tests {
		if got := Until(test.moment, now); got != test.until {
			t.Errorf("%s: until %q, want %q", test.name, got, test.until)
		}

		if got := Since(test.moment, now); got != test.since {
			t.Errorf("%s: since %q, want %q", test.name, got, test.since)
		}
	}
}

func TestDesired(t *testing.T) {
	three, unlimited := intstr.FromInt32(3), intstr.FromString("unlimited")

	tests := []struct {
		name     string
		machines v1alpha1.MachineSetMachines
		size     string
		class    string
	}{
		{"empty", v1alpha1.MachineSetMachines{}, "0", "<none>"},
		{"listed", v1alpha1.MachineSetMachines{Machines: []string{"a", "b"}}, "2", "<none>"},
		{"class", v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "c", Size: &three}}, "3", "c"},
		{"unlimited", v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "c", Size: &unlimited}}, "unlimited", "c"},
		{"class without size", v1alpha1.MachineSetMachines{MachineClass: &v1alpha1.MachineClass{Name: "c"}}, "0", "c"},
	}
	for _, test := range tests {
		if got := desired(&test.machines); got != test.size {
			t.Errorf("%s: %q machines, want %q", test.name, got, test.size)
		}

		if got := className(&test.machines); got != test.class {
			t.Errorf("%s: class %q, want %q", test.name, got, test.class)
		}
	}
}

// Every kind has READY and STATUS in the narrow table and MESSAGE in the wide one, and SUSPENDED before them if it can be suspended.
func TestCommonColumns(t *testing.T) {
	type machine = *v1alpha1.OmniMachine

	ready := &v1alpha1.OmniMachine{}
	ready.Status.Conditions = []metav1.Condition{
		{Type: "Accepted", Status: "True", Reason: "AcceptedByCluster"},
		{Type: "Ready", Status: "False", Reason: "Error", Message: "no answer"},
	}

	own := []Column[machine]{{Name: "Own", Description: "x", Cell: func(machine) any { return "own" }}}
	plain := &Descriptor[machine]{Columns: own}
	suspended := &Descriptor[machine]{Columns: own, Suspended: func(obj machine) bool { return obj == ready }}

	for name, test := range map[string]struct {
		of    *Descriptor[machine]
		obj   machine
		names string
		cells string
	}{
		"ready":         {plain, ready, "[Ready Status Own Message]", "[False Error own no answer]"},
		"unknown":       {plain, &v1alpha1.OmniMachine{}, "[Ready Status Own Message]", "[Unknown <none> own <none>]"},
		"suspended":     {suspended, ready, "[Suspended Ready Status Own Message]", "[True False Error own no answer]"},
		"not suspended": {suspended, &v1alpha1.OmniMachine{}, "[Suspended Ready Status Own Message]", "[False Unknown <none> own <none>]"},
	} {
		var (
			names []string
			cells []any
		)

		for _, column := range test.of.AllColumns() {
			names, cells = append(names, column.Name), append(cells, column.Cell(test.obj))

			definition := column.definition()
			if wide := definition.Priority == 1; wide != (column.Name == "Message") || definition.Type != "string" || definition.Description == "" {
				t.Errorf("%s: heading %+v", name, definition)
			}
		}

		if fmt.Sprint(names) != test.names || fmt.Sprint(cells) != test.cells {
			t.Errorf("%s: %v: %v", name, names, cells)
		}
	}
}
