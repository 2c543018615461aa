package chartserver_test

import (
	"bytes"
	"net/http"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/chartserver"
)

func TestPackIsReproducible(t *testing.T) {
	chart := chartserver.ConfigMapChart("demo", "1.0.0")
	if !bytes.Equal(chart.Pack(), chart.Pack()) {
		t.Error("two archives of one chart differ")
	}

	if chart.Files["Chart.yaml"] != "" {
		t.Error("packing changed the chart")
	}
}

func TestRepositoryCountsDownloads(t *testing.T) {
	repository := chartserver.StartRepository()
	defer repository.Close()

	repository.Add(chartserver.ConfigMapChart("demo", "1.0.0"))

	for path, want := range map[string]int{"/index.yaml": 200, "/demo-1.0.0.tgz": 200, "/missing.tgz": 404} {
		response, err := http.Get(repository.URL() + path)
		if err != nil {
			t.Fatal(err)
		}

		_ = response.Body.Close()

		if response.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, response.StatusCode, want)
		}
	}

	if got := repository.Downloads(); got != 1 {
		t.Errorf("%d downloads, want 1", got)
	}
}
