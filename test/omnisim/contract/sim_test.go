//go:build !realomni

package contract_test

import (
	"testing"
	"time"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim/contract"
)

// TestSimulator tests the simulator against the contract.
func TestSimulator(t *testing.T) {
	sim, err := omnisim.Start(omnisim.Options{Phase: 20 * time.Millisecond})
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
