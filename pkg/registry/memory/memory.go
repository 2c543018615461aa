// Package memory has the budgets of memory that requests wait for, and what was measured of the memory that a write takes.
package memory

const (
	// Copies is how many times the text of an object, or of the body of a request, is held.
	Copies = 6
	// PerValue is what a value takes, in bytes: its entries in the object before, in the object after or as it is stored, and in the
	// structures of field ownership. Measured: 50,000 empty objects in a free-form block take 74 MiB.
	PerValue = 1400
	// RestPerByteAndLevel is what a byte takes at each level of a JSON text that a patch is applied to, in bytes: the library that
	// applies merge patches and JSON patches keeps the rest of the text at each level that it reads. Measured for 900 KiB:
	// 80 MiB with 64 levels, 276 MiB with 260.
	RestPerByteAndLevel = 1.25
)
