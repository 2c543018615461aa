package omni

// effect is what a write of ours must look like in the copy.
type effect int

const (
	effectCreated  effect = iota // there, in this version or a later one
	effectUpdated                // this version or a later one, or gone again
	effectTornDown               // phase tearing down, or gone
	effectGone                   // gone, or made again
)
