//go:build !realomni

package contract_test

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim/contract"
)

// TestSimulator tests the simulator against the contract, as each version from 1.9 on. Only 1.9 is held to a real server
// of that version in the same way; see omnisim.Options.OmniVersion.
func TestSimulator(t *testing.T) {
	for _, version := range []string{"1.9", "1.11", "1.14"} {
		t.Run(version, func(t *testing.T) { testSimulator(t, version) })
	}
}

func testSimulator(t *testing.T, version string) {
	t.Helper()

	sim, err := omnisim.Start(omnisim.Options{Phase: 20 * time.Millisecond, OmniVersion: version})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(sim.Close)

	key, err := sim.CreateServiceAccount("admin", omnisim.RoleAdmin, time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	contract.Run(t, contract.Target{Endpoint: sim.Endpoint(), ServiceAccountKey: key, CA: sim.CAPEM()})
}
