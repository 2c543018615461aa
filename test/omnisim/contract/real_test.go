//go:build realomni

package contract_test

import (
	"os"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim/contract"
)

// TestRealOmni tests a real Omni against the contract that the simulator keeps; see hack/test-omni.sh, which sets the
// variables.
func TestRealOmni(t *testing.T) {
	endpoint, key, caFile := os.Getenv("OMNI_ENDPOINT"), os.Getenv("OMNI_SERVICE_ACCOUNT_KEY"), os.Getenv("OMNI_CA_FILE")
	if endpoint == "" || key == "" || caFile == "" {
		t.Fatal("OMNI_ENDPOINT, OMNI_SERVICE_ACCOUNT_KEY and OMNI_CA_FILE must be set")
	}

	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}

	contract.Run(t, contract.Target{Endpoint: endpoint, ServiceAccountKey: key, CA: ca})
}
