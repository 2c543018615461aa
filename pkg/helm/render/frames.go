package render

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Kind says what a frame holds.
type Kind byte

// The kinds of frames. A worker begins with KindReady, which says
// why it has no filter of system calls, or nothing, and ends each piece of work with
// KindFailure, or as follows.
//
// For a chart it gets KindJob and KindArchive, may send KindQuestion, each of which gets
// KindReply, and ends with KindAnswer and KindText. For an index it gets KindIndex, may
// send KindEntries any number of times, and ends with KindDone. For a provenance file it
// gets KindProvenance, KindKeyring and KindSignature, and ends with KindDone.
const (
	KindReady    Kind = 'r'
	KindJob      Kind = 'j'
	KindArchive  Kind = 'c'
	KindQuestion Kind = 'q'
	KindReply    Kind = 'p'
	KindAnswer   Kind = 'a'
	KindText     Kind = 't'
	KindFailure  Kind = 'f'

	KindIndex      Kind = 'i'
	KindEntries    Kind = 'e'
	KindProvenance Kind = 'v'
	KindKeyring    Kind = 'k'
	KindSignature  Kind = 's'
	KindDone       Kind = 'd'
)

// headerBytes are the kind and the length of a frame.
const headerBytes = 5

// Limits of frames, in bytes.
const (
	// MaxText is how much all templates of a chart may print together.
	MaxText = 16 << 20
	// MaxAnswer bounds the chart as Helm records it, with its CRDs.
	MaxAnswer = 32 << 20
	// MaxReply bounds what one lookup finds.
	MaxReply = 4 << 20
	// maxRequest bounds what a worker is sent: the parent has bounded it before.
	maxRequest = 64 << 20
	// maxReason bounds why a worker has no filter of system calls.
	maxReason = 1 << 10
	// maxMessage bounds questions and failures.
	maxMessage = 64 << 10
)

// limit is how long a frame may be, in bytes; -1 if there is no such kind.
func (k Kind) limit() int {
	switch k {
	case KindReady:
		return maxReason
	case KindDone:
		return 0
	case KindJob, KindArchive, KindIndex, KindKeyring, KindSignature:
		return maxRequest
	case KindEntries:
		return MaxIndex + maxMessage
	case KindQuestion, KindFailure, KindProvenance:
		return maxMessage
	case KindReply:
		return MaxReply + maxMessage
	case KindAnswer:
		return MaxAnswer
	case KindText:
		return MaxText
	default:
		return -1
	}
}

// WriteFrame writes one frame. It is an error if the content is longer than its
// kind may be; nothing is written then.
func WriteFrame(to io.Writer, kind Kind, content []byte) error {
	if len(content) > kind.limit() {
		return fmt.Errorf("a frame of kind %q has %d bytes, of %d that it may have", kind, len(content), kind.limit())
	}

	header := binary.BigEndian.AppendUint32([]byte{byte(kind)}, uint32(len(content))) //nolint:gosec // bounded above

	if _, err := to.Write(header); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}

	if _, err := to.Write(content); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}

	return nil
}

// ReadFrame reads one frame. What is longer than its kind may be is refused before
// it is read. The error is io.EOF if there is no further frame.
func ReadFrame(from io.Reader) (Kind, []byte, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(from, header[:1]); err != nil {
		return 0, nil, err
	}

	if _, err := io.ReadFull(from, header[1:]); err != nil {
		return 0, nil, fmt.Errorf("read the length of a frame: %w", io.ErrUnexpectedEOF)
	}

	kind, length := Kind(header[0]), int64(binary.BigEndian.Uint32(header[1:]))
	if length > int64(kind.limit()) {
		return 0, nil, fmt.Errorf("a frame of kind %q has %d bytes, of %d that it may have", kind, length, kind.limit())
	}

	content := make([]byte, length)
	if _, err := io.ReadFull(from, content); err != nil {
		return 0, nil, fmt.Errorf("read a frame of %d bytes: %w", length, io.ErrUnexpectedEOF)
	}

	return kind, content, nil
}
