// Package asynccache asks what may take long (a chart repository, a comparison with a
// cluster, an Omni) beside the runs of a controller, and keeps the answers for a while: a
// run for another reason asks nobody.
//
// It is no golang.org/x/sync/singleflight: an answer outlives the question, a question
// that nobody has any more is given up, and who asks waits for what hangs only once.
package asynccache
