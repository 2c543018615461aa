//go:build !race

package rendertest

const raceDetector = false
