package e2e

import (
	"fmt"
	"testing"
	"time"
)

// The commands of docs/how-to/rotate-key.md change the key of a connection, which stays Ready, and leave the Secret as it is
// otherwise.
func TestRotateKeyPage(t *testing.T) {
	t.Parallel()

	steps := commandsOf(t, "docs/how-to/rotate-key.md", 2)

	n := newNewcomer(t)
	n.connect()

	const expires, allowed = "{.status.serviceAccount.expirationTime}", `{.metadata.annotations.omni\.texashpc\.com/allowed-endpoints}`

	before := n.run("get", "oconn", "omni", "-o", "jsonpath="+expires)
	annotation := n.run("get", "secret", "omni-service-account", "-o", "jsonpath="+allowed)

	key, err := n.omni.AddKey("omni-cluster-operator", 60*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}

	n.environment = append(n.environment, "NEW_KEY="+key)
	n.types(steps[0].text)
	n.wait("the new key to be used", func() error {
		if now := n.run("get", "oconn", "omni", "-o", "jsonpath="+expires); now <= before {
			return fmt.Errorf("the key ends at %s, and before it was %s", now, before)
		}

		return nil
	})
	n.wants(n.types(steps[1].text), "omni-cluster-operator 2", "condition met")

	if now := n.run("get", "secret", "omni-service-account", "-o", "jsonpath="+allowed); now == "" || now != annotation {
		t.Errorf("the key may be used with %q, and before with %q", now, annotation)
	}
}
