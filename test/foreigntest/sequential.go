package foreigntest

import "testing"

// Sequential skips a test under the race detector: it does one thing after another, or what others do at once with less input,
// so the detector finds nothing new in it, and takes ten times as long. The first stage of the tests runs it.
func Sequential(t testing.TB) {
	t.Helper()

	if raceDetector {
		t.Skip("nothing for the race detector: the first stage runs it")
	}
}
