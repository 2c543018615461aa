package promql

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "draw the pictures of docs/images anew")

// silent are panels without a series while everything works.
var silent = []string{"Waiting for the own rate limit"}

// dashboard is what is read of a dashboard's JSON.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title, Type string
	FieldConfig struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ Expr, LegendFormat string }
}

func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(chart, "dashboards", "*.json"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d dashboards, %v", len(paths), err)
	}

	found := map[string]dashboard{}

	for _, path := range paths {
		var board dashboard
		if err := json.Unmarshal([]byte(read(t, path)), &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}

		found[filepath.Base(path[:len(path)-len(".json")])] = board
	}

	return found
}

// Every panel reads what the programs expose, and shows something.
func TestDashboards(t *testing.T) {
	data, lasts := recorded(t)
	exposed := data.exposed()

	for name, board := range dashboards(t) {
		for _, panel := range board.Panels {
			if len(panel.Targets) == 0 {
				t.Errorf("%s, %s: reads nothing", name, panel.Title)
			}

			for _, target := range panel.Targets {
				readsWhatIsExposed(t, target.Expr, exposed)

				if got := data.over(target.Expr, lasts); len(got) == 0 != slices.Contains(silent, panel.Title) {
					t.Errorf("%s, %s: %d series of %s", name, panel.Title, len(got), target.Expr)
				}
			}
		}
	}
}

// The pictures in the documentation are those of the dashboards, and of the recording.
func TestPictures(t *testing.T) {
	data, lasts := recorded(t)

	for name, board := range dashboards(t) {
		got := drawBoard(t, data, board, lasts)
		path := filepath.Join("..", "..", "docs", "images", name+".svg")

		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}

		if want := []byte(read(t, path)); !bytes.Equal(want, got) {
			t.Errorf("%s is not what is drawn: go test ./... -update in test/promql", path)
		}
	}
}
