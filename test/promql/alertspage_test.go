package promql

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// alertsPage says what to do about each alert.
const alertsPage = "../../docs/how-to/alerts.md"

// The page has a row for every alert of the chart, with its severity and the time after which it fires, and no other.
func TestAlertsPage(t *testing.T) {
	all := alerts(t)
	maps.Copy(all, rendered(t))

	var onPage []string

	for line := range strings.Lines(read(t, alertsPage)) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `Omni") || len(cells) != 4 {
			continue
		}

		name := strings.Trim(cells[0], "| `")
		onPage = append(onPage, name)

		after := "at once"
		if all[name].For != 0 {
			after = all[name].For.String()
		}

		if severity := all[name].Labels["severity"]; severity != cells[1] || after != cells[2] {
			t.Errorf("%s: the page says %s, %s; the chart %s, %s", name, cells[1], cells[2], severity, after)
		}
	}

	slices.Sort(onPage)

	if want := slices.Sorted(maps.Keys(all)); !slices.Equal(onPage, want) {
		t.Errorf("on the page are %v, in the chart %v", onPage, want)
	}
}
