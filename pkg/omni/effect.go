package omni

// Effect is what a write of ours must look like in the copy.
type Effect int

const (
	EffectCreated  Effect = iota // there, in this version or a later one
	EffectUpdated                // this version or a later one, or gone again
	EffectTornDown               // phase tearing down, or gone
	EffectGone                   // gone, or made again
)
