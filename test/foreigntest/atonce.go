package foreigntest

// AtOnce returns how often a test does the same thing at once: n times, and under the race detector twice, which is what a
// race needs. There each takes ten times as long, and the first stage of the tests asserts what all of them take together.
func AtOnce(n int) int {
	if raceDetector {
		return min(n, 2)
	}

	return n
}
