package answer

// What decoders take from the heap for parts of a JSON text, in bytes. They take more for
// typed objects whose text is short, and less for others; TestEstimate holds the two
// against each other. An object in a list takes its whole struct, also if it is empty,
// and the items of a list of objects are the largest structs there are.
const (
	costByte    = 2    // it is read, and kept as a part of a value
	costToken   = 40   // a key, a value, a list
	costObject  = 64   // a map, or a struct behind a pointer
	costElement = 512  // an object in a list
	costItem    = 2048 // an object in a list of the outermost object
)

// maxDepth is how deep maps and lists may be nested.
const maxDepth = 256

// itemDepth is the depth of the items of a list of objects: {"items": [
const itemDepth = 2

// meter estimates what a JSON text becomes. It does not check that it is one.
type meter struct {
	bytes, memory int64
	depth         int
	lists         [maxDepth/64 + 1]uint64 // which of the containers that are open are lists
	text, escaped bool                    // inside a string; after a backslash there
}

// add goes on with a text, and stops after the first byte that closes the outermost
// container. It returns how many bytes it took.
func (m *meter) add(text []byte) (taken int, closed bool) {
	for i, c := range text {
		m.bytes++
		m.memory += costByte

		switch {
		case m.escaped:
			m.escaped = false
		case m.text:
			m.escaped, m.text = c == '\\', c != '"'
		case m.structure(c):
			return i + 1, true
		}
	}

	return len(text), false
}

// structure takes a byte outside of strings, and tells whether it closes the outermost container.
func (m *meter) structure(c byte) (closed bool) {
	switch c {
	case '"':
		m.text = true
		m.memory += costToken
	case ',':
		m.memory += costToken
	case '{':
		m.memory += costObject + m.inList()
		m.open(false)
	case 'n': // null, which no other word has
		m.memory += m.inList()
	case '[':
		m.memory += costToken
		m.open(true)
	case '}', ']':
		if m.depth > 0 {
			m.depth--

			return m.depth == 0
		}
	}

	return false
}

// inList is what an object costs more because it is in a list.
func (m *meter) inList() int64 {
	switch {
	case m.depth == 0 || m.depth > maxDepth || m.lists[m.depth/64]&(1<<(m.depth%64)) == 0:
		return 0
	case m.depth == itemDepth:
		return costItem
	default:
		return costElement
	}
}

func (m *meter) open(list bool) {
	if m.depth++; m.depth > maxDepth {
		return
	}

	bit := uint64(1) << (m.depth % 64)
	if m.lists[m.depth/64] &^= bit; list {
		m.lists[m.depth/64] |= bit
	}
}
