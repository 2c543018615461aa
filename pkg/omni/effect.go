package omni

// Effect is what the copy must show after one of our writes.
type Effect int

const (
	EffectCreated  Effect = iota // exists, in this version or a later one
	EffectUpdated                // this version or a later one, or gone
	EffectTornDown               // phase tearing down, or gone
	EffectGone                   // gone, or created again
)
