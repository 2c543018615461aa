package foreigntest

// Load returns how much a test of a bound on memory sends or stores, in bytes, values or pieces: n, and under the race
// detector a tenth of it. There the same code runs in the same goroutines: more of the same input shows a race no better, and
// reading it takes ten times as long. The first stage of the tests asserts the bound with all of it.
func Load(n int) int {
	const share = 10

	if raceDetector {
		return (n + share - 1) / share
	}

	return n
}
