//go:build !race

package foreigntest

const raceDetector = false
