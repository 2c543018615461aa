package charts_test

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

// A chart of which only the digest was written down is had while it is kept, and not for who wants it signed.
func TestAKnownChart(t *testing.T) {
	repository := chartserver.StartRepository()
	defer repository.Close()

	digest := repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))
	source := charts.Source{Repository: repository.URL(), Chart: "demo", Version: "1.0.0"}
	known := charts.Known(source, "1.0.0", digest)
	f := newFetcher(charts.Options{})

	if f.Keeps(source, known) {
		t.Error("it is kept before anybody had it")
	}

	_, err := f.Open(t.Context(), source, known)
	wantReason(t, err, charts.Unreachable, "chart demo 1.0.0 is not kept here any more")

	if _, err := fetch(f, source); err != nil {
		t.Fatal(err)
	}

	if _, err := f.Open(t.Context(), source, known); err != nil || !f.Keeps(source, known) {
		t.Errorf("it is kept: %v", err)
	}

	signed := source
	signed.Keyring = []byte{}

	if f.Keeps(signed, known) {
		t.Error("it counts as signed")
	}

	_, err = f.Open(t.Context(), signed, known)
	wantReason(t, err, charts.Unreachable)

	if name := charts.Known(charts.Source{Chart: "oci://registry.example.com/charts/demo"}, "1.0.0", digest).Name; name != "demo" {
		t.Errorf("the name is %q", name)
	}
}
