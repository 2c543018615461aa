package session

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/test/await"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnitest"
	"omni.texashpc.com/omni-cluster-operator/test/plantest"
)

// TestSessionWithEachVersion checks that a session watches what its Omni serves, and works: a kind that is not served has
// no resources.
func TestSessionWithEachVersion(t *testing.T) {
	for _, test := range []struct {
		version      string
		want         omni.Version
		checks, disk bool // whether Omni serves KubernetesHealthChecks, and MachineInstallDiskConfigs
	}{
		{"1.8", omni.Version{Text: "v1.8.0", API: 2, Instance: "omni"}, false, false},
		{"1.9", omni.Version{Text: "v1.9.3", API: 2, Instance: "omni"}, true, false},
		{"1.14", omni.Version{Text: "v1.14.1", API: 3, Instance: "omni"}, true, true},
	} {
		t.Run(test.version, func(t *testing.T) {
			server := startOmni(t, omnisim.Options{Phase: 20 * time.Millisecond, OmniVersion: test.version})
			_, lease := connect(t, server, &omnitest.Recorded{})

			if lease.Version() != test.want {
				t.Errorf("it says %+v", lease.Version())
			}

			if lease.Serves(omnires.KubernetesHealthCheckType) != test.checks || lease.Serves(omni.MachineInstallDiskConfigType) != test.disk {
				t.Errorf("health checks %t, install disks %t", lease.Serves(omnires.KubernetesHealthCheckType), lease.Serves(omni.MachineInstallDiskConfigType))
			}

			checks, err := safe.StateListAll[*omnires.KubernetesHealthCheck](t.Context(), lease.Copy())
			if err != nil || checks.Len() != 0 {
				t.Errorf("the copy has %d health checks: %v", checks.Len(), err)
			}

			converge(t, lease.Session, documentFor(addMachines(t, server, 1)))
		})
	}
}

// TestOmniThatIsTooOld checks that a session is not opened without a kind that is needed, and which text says so.
func TestOmniThatIsTooOld(t *testing.T) {
	server := startOmni(t, omnisim.Options{OmniVersion: "1.8"})
	_, key := newAccount(t, server, "operator", omnisim.RoleOperator, time.Hour)
	undefine(t, server, omnires.MachineSetStatusType)

	pool := NewPool(t.Context(), PoolOptions{})
	defer pool.Close()

	_, err := pool.Acquire(t.Context(), Identity{UID: "uid-1"}, Config{Endpoint: server.Endpoint(), Key: key, CABundle: server.CAPEM()})

	var old *omni.TooOldError
	if !errors.As(err, &old) || old.Version.Text != "v1.8.0" || omni.Classify(err) != omni.ClassTooOld {
		t.Fatalf("it is opened: %v", err)
	}

	if said := omni.Message(err); said != "Omni v1.8.0 does not serve MachineSetStatus, which is needed: upgrade Omni to 1.9 or later" {
		t.Error(said)
	}
}

// undefine removes the definition of a type.
func undefine(t *testing.T, server *omnisim.Server, resourceType resource.Type) {
	t.Helper()

	definition := resource.NewMetadata(meta.NamespaceName, meta.ResourceDefinitionType, strings.ToLower(resourceType), resource.VersionUndefined)
	if err := server.Unchecked().Destroy(t.Context(), definition, state.WithDestroyOwner(meta.Owner)); err != nil {
		t.Fatal(err)
	}
}

// TestUpgradeUnderASession upgrades Omni under a running session. The former session is never ready again, because it
// watches too little, and another one takes its place by itself.
func TestUpgradeUnderASession(t *testing.T) {
	server := startOmni(t, omnisim.Options{Phase: 20 * time.Millisecond})
	pool, before := connect(t, server, &omnitest.Recorded{})

	machines := addMachines(t, server, 1)
	document := documentFor(machines) + "---\nkind: Machine\nname: " + machines[0] + "\ninstall:\n  disk: /dev/vda\n"
	converge(t, before.Session, document)

	if err := server.Upgrade("1.11"); err != nil {
		t.Fatal(err)
	}

	var after *Lease

	await.Until(t, "another session", func() bool {
		lease, open := pool.Get("uid-1")
		if !open {
			return false
		}

		if lease.Session == before.Session {
			// Until it has noticed the end of its watches, it plans from the copy that it has.
			planned, err := lease.Plan(t.Context(), "demo", plantest.Load(t, document), plan.Options{})
			if err == nil && !planned.Empty() || err != nil && !errors.Is(err, omni.ErrNotSynced) {
				t.Errorf("the former session plans %v: %v", planned, err)
			}

			lease.Release()

			return false
		}

		after = lease

		return true
	})
	defer after.Release()

	if err := before.Ready("demo"); !errors.Is(err, omni.ErrNotSynced) || before.Mirror().Synced() {
		t.Errorf("the former session is ready: %v", err)
	}

	await.Until(t, "the new copy is complete", func() bool { return after.Health().Synced })

	if after.Version() != (omni.Version{Text: "v1.11.0", API: 3, Instance: "omni"}) || !after.Serves(omni.MachineInstallDiskConfigType) {
		t.Errorf("it says %+v", after.Version())
	}

	disk, err := safe.StateGetByID[*omni.MachineInstallDiskConfig](t.Context(), after.Copy(), machines[0])
	if err != nil || disk.TypedSpec().Disk != "/dev/vda" {
		t.Errorf("the copy has the install disk %v: %v", disk, err)
	}

	planned, err := after.Plan(t.Context(), "demo", plantest.Load(t, document), plan.Options{})
	if err != nil || !planned.Empty() {
		t.Errorf("after the upgrade, the plan has %v: %v", planned.Changes, err)
	}

	// A new choice and its machine, then a choice that goes.
	converge(t, after.Session, strings.Replace(document, "disk: /dev/vda", "diskSelector: disk.transport == 'nvme'", 1))
	converge(t, after.Session, documentFor(machines)+"---\nkind: Machine\nname: "+machines[0]+"\nlabels: {a: b}\n")
}

// TestRestartOfTheSameVersion checks that a restart of Omni keeps the session.
func TestRestartOfTheSameVersion(t *testing.T) {
	server := startOmni(t, omnisim.Options{})
	pool, before := connect(t, server, &omnitest.Recorded{})

	if err := server.Upgrade("1.9"); err != nil {
		t.Fatal(err)
	}

	await.Until(t, "the loss shows", func() bool { return !before.Mirror().Synced() })
	await.Until(t, "the copy is complete again", func() bool { return before.Mirror().Synced() })

	lease, open := pool.Get("uid-1")
	if !open || lease.Session != before.Session {
		t.Errorf("it is another session, or none (%t)", open)
	}

	lease.Release()
}
