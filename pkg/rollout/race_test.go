//go:build race

package rollout_test

// raceDetector says that the tests run ten times slower than otherwise.
const raceDetector = true
