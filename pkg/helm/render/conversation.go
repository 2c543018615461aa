package render

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

// answerLimits bound the chart as it is recorded, once it is decoded.
//
//nolint:gochecknoglobals // a constant, but Go has none of this type
var answerLimits = foreign.Limits{Bytes: MaxAnswer, Depth: 200, Nodes: 500_000, Expanded: MaxAnswer}

// answer looks up what a template asks for.
func (p *process) answer(ctx context.Context, content []byte, lookup Lookup) error {
	var question Question
	if err := json.Unmarshal(content, &question); err != nil {
		return errConfused
	}

	reply := lookup(ctx, question)
	if len(reply.Object) > MaxReply {
		reply = Reply{Error: fmt.Sprintf("what was found has more than %d MiB", MaxReply>>20)}
	}

	text, err := json.Marshal(reply)
	if err != nil {
		return fmt.Errorf("write what was looked up: %w", err)
	}

	return WriteFrame(p.to, KindReply, text)
}

// parseFailure is what a worker says is wrong with what it was given.
func parseFailure(content []byte) error {
	failure := &Failure{}
	if err := json.Unmarshal(content, failure); err != nil {
		return errConfused
	}

	return failure
}

// decode reads an answer and the text of the files.
func (s *printed) decode() (*Answer, map[string]string, error) {
	size, err := foreign.Measure(context.Background(), s.answer, answerLimits)
	if err != nil {
		var limit *foreign.LimitError
		if errors.As(err, &limit) {
			return nil, nil, refused("its own files and values, as Helm records them: %s", limit)
		}

		return nil, nil, errConfused
	}

	answer := &Answer{size: size}
	if err := json.Unmarshal(s.answer, answer); err != nil || answer.Chart == nil || answer.Chart.Metadata == nil {
		return nil, nil, errConfused
	}

	files, err := split(answer, string(s.text))

	return answer, files, err
}

// expect reads a frame of one kind.
func (p *process) expect(wanted Kind) ([]byte, error) {
	kind, content, err := ReadFrame(p.from)
	if err != nil {
		return nil, err
	}

	if kind != wanted {
		return nil, errConfused
	}

	return content, nil
}

// split cuts the text into the files that it consists of.
func split(answer *Answer, text string) (map[string]string, error) {
	files := make(map[string]string, len(answer.Files))

	for _, file := range answer.Files {
		_, twice := files[file.Name]
		if file.Bytes < 0 || file.Bytes > len(text) || twice || !inside(file.Name, answer.Chart.Name()) {
			return nil, errConfused
		}

		files[file.Name], text = text[:file.Bytes], text[file.Bytes:]
	}

	if text != "" {
		return nil, errConfused
	}

	return files, nil
}

// inside reports whether a rendered file has a name that Helm gives to one of the
// chart with this name.
func inside(name, chart string) bool {
	return strings.HasPrefix(name, chart+"/") && path.Clean(name) == name
}

// chartFailure is a chart's failure: one of its size is final.
func chartFailure(err error) error {
	var failure *Failure
	if errors.As(err, &failure) && failure.Stage == StageSize {
		return refused("%s", failure.Text)
	}

	return err
}

// Command is the hidden subcommand that makes a program a worker. It has one
// argument: the bytes of memory that a chart may take.
const Command = "render-worker"

// Job is what a worker needs to render a chart, beside the packed chart itself.
type Job struct {
	// Values are the user's, as EncodeValues writes them.
	Values json.RawMessage `json:"values"`
	// Release is what templates know as .Release.
	Release Release `json:"release"`
	// Cluster is what templates know as .Capabilities.
	Cluster Cluster `json:"cluster"`
	// CRDsFirst ends the job before anything is rendered if the chart brings CRDs: templates may ask for
	// the kinds that those make.
	CRDsFirst bool `json:"crdsFirst,omitempty"`
	// Explain is the name of a rendered file whose text comes in the place of the chart: the worker only
	// says what is wrong with it.
	Explain string `json:"explain,omitempty"`
	// Admit is asked with what the worker answers, before another chart is rendered in its place. May be nil. It
	// must not have anything rendered itself.
	Admit func(answer *Answer, files map[string]string) error `json:"-"`
}

// Release is what a revision is called.
type Release struct {
	// Name and Namespace are those of the release in the workload cluster.
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Revision is the number that templates see.
	Revision int `json:"revision"`
	// Upgrade tells that it is no install.
	Upgrade bool `json:"upgrade,omitempty"`
}

// Cluster is what a workload cluster says of itself.
type Cluster struct {
	// Version, Major and Minor are those of Kubernetes.
	Version string `json:"version"`
	Major   string `json:"major"`
	Minor   string `json:"minor"`
	// APIVersions are the group versions, and the kinds behind each of them.
	APIVersions []string `json:"apiVersions"`
}

// Answer is what a worker says of a chart. The text of the files follows in a frame
// of its own.
type Answer struct {
	// Chart is the chart as Helm records it: with the dependencies and values that are in effect, without
	// schemas that lead outside of it.
	Chart *chart.Chart `json:"chart"`
	// CRDs are the files of CRDs that the chart and its dependencies bring, if Job.CRDsFirst asked for them.
	CRDs []CRD `json:"crds,omitempty"`
	// Rendered is false if CRDs come first.
	Rendered bool `json:"rendered"`
	// Files are what was rendered and is not empty, in the order of their text.
	Files []File `json:"files,omitempty"`
	// Unchecked are the charts whose schemas of values are broken or lead outside.
	Unchecked []string `json:"unchecked,omitempty"`

	size foreign.Size // of the answer itself, without the text of the files
}

// Size is what the answer became, without the text of the files.
func (a *Answer) Size() foreign.Size { return a.size }

// CRD is one file of CRDs.
type CRD struct {
	// Name is that of the file, from the chart's directory on.
	Name string `json:"name"`
	// Data is what the file holds.
	Data []byte `json:"data"`
}

// File is one rendered template.
type File struct {
	// Name is that of the template, from the name of the chart on.
	Name string `json:"name"`
	// Bytes is how long its text is.
	Bytes int `json:"bytes"`
}

// Question is a lookup of a template.
type Question struct {
	// APIVersion and Kind are those of the objects.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace may be empty, and Name: that asks for a list.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Reply is what was found.
type Reply struct {
	// Object is the object, or the list, as JSON; empty if there is none.
	Object json.RawMessage `json:"object,omitempty"`
	// Error says why it could not be looked up.
	Error string `json:"error,omitempty"`
}

// Stage says where a chart failed.
type Stage string

// The stages.
const (
	// StageUnpack and StageLoad: the archive is none, or holds no chart.
	StageUnpack Stage = "unpack"
	StageLoad   Stage = "load"
	// StageRender: the dependencies, the values or the templates do not fit.
	StageRender Stage = "render"
	// StageSize: what the chart prints, or the chart itself, is too large.
	StageSize Stage = "size"
)

// Failure is why a chart cannot be rendered, in Helm's words. They may hold values.
type Failure struct {
	// Stage is where it failed.
	Stage Stage `json:"stage"`
	// Text says why.
	Text string `json:"text"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Text }

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
