// Package render has the charts of others read and rendered in worker processes, and
// the indexes of their repositories and their provenance files parsed there.
//
// A chart is a program: its templates can recurse, loop and print without end, and
// a Go process cannot bound what a part of it takes. So a Pool runs a few children
// of the program itself (package worker), each with a bound on its memory and a
// deadline, and kills them. What dies of a chart is a worker.
//
// The two talk in frames over the standard streams. A worker gets one packed chart
// with its values at a time, or one of the other texts, and is used again for the next. It has no environment,
// no credentials and no way to open a file or a connection: what a template looks
// up in the workload cluster, it asks the parent for. Nothing that it says is
// trusted: frames are bounded, and the caller checks the text.
package render
