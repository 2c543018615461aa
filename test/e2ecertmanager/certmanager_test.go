package e2ecertmanager

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// step is something that happens to an installation.
type step struct {
	name string
	// do returns when what is to be seen was seen.
	do func(t *testing.T, s *installation)
	// gap says that requests or new connections may fail, and why: it is documented in high-availability.md. Then do waits for
	// a failure where there has to be one. Without it none may.
	gap string
	// refuses says that only new connections may fail, while requests may not.
	refuses string
	// stays says that the next step begins in the state that this one leaves.
	stays bool
}

// TestCertManager installs the chart beside cert-manager and lets happen what happens to certificates. Times are told and not
// judged.
func TestCertManager(t *testing.T) {
	s := newInstallation(t)
	s.install(t)

	var rows []row

	for _, step := range steps() {
		if !t.Run(step.name, func(t *testing.T) { rows = append(rows, s.walk(t, step)) }) {
			break // what follows would begin in a state that nobody knows
		}
	}

	t.Log("\n" + table(rows))

	if t.Failed() {
		return
	}

	s.load.stop()

	// Every write that was acknowledged is there.
	if got, want := s.stored(t).Annotations[writesOf], strconv.Itoa(s.load.written()); got != want {
		t.Errorf("the object has the write %s, and %s was acknowledged", got, want)
	}

	t.Run("uninstall", func(t *testing.T) { s.uninstall(t) })
}

// install: available without any hand.
func (s *installation) install(t *testing.T) {
	t.Helper()
	s.preparePods(t)
	s.history = s.watchRegistration(t)

	begin := time.Now()

	s.helm = newHelm(t, s.hub)
	s.helm.install(s.network)

	helm := time.Since(begin)

	s.apiserverRuns = s.run(t, s.apiserver)
	running := time.Since(begin)

	s.until(t, "the API to be Available", s.available)

	available := time.Since(begin)

	s.controllerRuns = s.run(t, s.controller)
	s.createLoad(t)

	works := s.settled(t)
	s.more(t, 100)

	if bundle, seen := s.history.first(func(s state) bool { return s.bundle }); seen {
		t.Logf("install: Helm %s, caBundle %s, omni-apiserver ready %s, Available %s, controller ready and at work %s later",
			round(helm), round(bundle.Sub(begin)), round(running), round(available), round(works))
	}

	t.Logf("the APIService said: %s", strings.Join(s.history.take(), " -> "))

	if now := s.load.now(); now.failed > 0 || now.refused > 0 {
		t.Fatalf("after the installation: %+v, %v", now, s.load.takeErrors())
	}
}

// row is what a step cost.
type row struct {
	name               string
	counts             counts
	took, controller   time.Duration
	registration, gaps []string
}

// walk does one step, waits until everything works again, and judges what was counted.
func (s *installation) walk(t *testing.T, step step) row {
	before, begin := s.load.now(), time.Now()
	s.load.takeErrors()
	s.history.take()

	step.do(t, s)

	took := time.Since(begin)
	controller := s.settled(t)
	s.more(t, 40)

	r := row{
		name: step.name, counts: s.load.now().minus(before), took: took, controller: controller,
		registration: s.history.take(), gaps: s.load.takeErrors(),
	}

	t.Logf("%+v\nthe APIService said: %s\nerrors: %q", r.counts, strings.Join(r.registration, " -> "), r.gaps)

	if r.counts.failed > 0 && step.gap == "" {
		t.Errorf("%d of %d requests failed: %q", r.counts.failed, r.counts.requests, r.gaps)
	}

	if r.counts.refused > 0 && step.gap == "" && step.refuses == "" {
		t.Errorf("%d of %d new connections were refused: %q", r.counts.refused, r.counts.connections, r.gaps)
	}

	if step.stays {
		return r
	}

	// After each step nothing fails any more.
	still := s.load.now()
	s.more(t, 20)

	if after := s.load.now().minus(still); after.failed > 0 || after.refused > 0 {
		t.Errorf("afterwards: %+v, %q", after, s.load.takeErrors())
	}

	return r
}

// table is for people.
func table(rows []row) string {
	var b strings.Builder

	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\trequests failed\tnew connections refused\ttook\tcontroller at work after")

	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%d of %d\t%d of %d\t%s\t%s\n", r.name, r.counts.failed, r.counts.requests, r.counts.refused, r.counts.connections,
			round(r.took), round(r.controller))
	}

	_ = w.Flush() // into memory

	return b.String()
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
