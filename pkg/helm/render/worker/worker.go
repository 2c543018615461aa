// Package worker is what runs in the child processes of package render. It is the
// only place where the charts of others are read and rendered, and where the indexes
// of their repositories, provenance files and keyrings are parsed.
package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// Exit codes of a worker.
const (
	exitDone  = 0
	exitSetUp = 3
	exitLost  = 4
)

// Asked reports whether the program was started as a worker: it then has to do
// nothing but exit with what Run returns.
func Asked(arguments []string) bool {
	const want = 3 // the program, the command, the memory

	return len(arguments) == want && arguments[1] == render.Command
}

// Run is a worker: it bounds the process, and renders what comes on standard input
// until that ends. The arguments are those of the program. It returns the code to
// exit with.
func Run(arguments []string) int {
	memory, err := strconv.ParseInt(arguments[2], 10, 64)
	if err != nil {
		return exitSetUp
	}

	// Helm's own warnings hold values, and anything on standard output would be taken for an answer.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)

	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr

	unfiltered := ""

	if err := confine(memory); errors.Is(err, errNoFilter) {
		unfiltered = err.Error()
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err) // the parent does not log it, but a debugger may

		return exitSetUp
	}

	w := &worker{out: out, frames: make(chan frame)}
	go w.read(in)

	if err := render.WriteFrame(out, render.KindReady, []byte(unfiltered)); err != nil {
		return exitLost
	}

	for {
		if err := w.serve(); err != nil {
			return exitLost
		}
	}
}

// worker talks with the parent.
type worker struct {
	out    io.Writer
	frames chan frame
}

type frame struct {
	kind    render.Kind
	content []byte
}

// read reads frames all the time: when the parent is gone, the worker ends at once,
// whatever it is at.
func (w *worker) read(in io.Reader) {
	for {
		kind, content, err := render.ReadFrame(in)
		if err != nil {
			os.Exit(exitDone)
		}

		w.frames <- frame{kind, content}
	}
}

// next returns the content of the next frame, which must be of one kind.
func (w *worker) next(kind render.Kind) ([]byte, error) {
	got := <-w.frames
	if got.kind != kind {
		return nil, fmt.Errorf("a frame of kind %q came, want %q", got.kind, kind)
	}

	return got.content, nil
}

// serve does one piece of work.
func (w *worker) serve() error {
	switch got := <-w.frames; got.kind {
	case render.KindJob:
		return w.serveChart(got.content)
	case render.KindIndex:
		return w.serveIndex(got.content)
	case render.KindProvenance:
		return w.serveProvenance(got.content)
	default:
		return fmt.Errorf("a frame of kind %q came, which begins nothing", got.kind)
	}
}

// serveChart renders one chart.
func (w *worker) serveChart(text []byte) error {
	archive, err := w.next(render.KindArchive)
	if err != nil {
		return err
	}

	var job render.Job
	if err := json.Unmarshal(text, &job); err != nil {
		return err
	}

	answer, printed, err := w.render(&job, archive)

	if err != nil {
		return w.fail(err)
	}

	content, err := encode(answer)
	if err != nil {
		return err
	}

	if len(content) > render.MaxAnswer {
		return w.send(render.KindFailure, tooLarge("its own files and values have more than %d MiB", render.MaxAnswer))
	}

	if err := render.WriteFrame(w.out, render.KindAnswer, content); err != nil {
		return err
	}

	return render.WriteFrame(w.out, render.KindText, printed)
}

// render makes a failure of a panic, whose text may hold anything.
func (w *worker) render(job *render.Job, archive []byte) (answer *render.Answer, printed []byte, err error) {
	defer panicked(render.StageRender, "the chart makes Helm fail", &err)

	return renderChart(job, archive, w.lookup)
}

// panicked makes a failure of a panic, whose text may hold anything.
func panicked(stage render.Stage, what string, err *error) {
	if cause := recover(); cause != nil {
		*err = &render.Failure{Stage: stage, Text: fmt.Sprintf("%s in a way that it does not handle (%T)", what, cause)}
	}
}

// fail tells of a failure. Other errors end the worker.
func (w *worker) fail(err error) error {
	var failure *render.Failure
	if errors.As(err, &failure) {
		return w.send(render.KindFailure, short(failure))
	}

	return err
}

func (w *worker) send(kind render.Kind, message any) error {
	content, err := encode(message)
	if err != nil {
		return err
	}

	return render.WriteFrame(w.out, kind, content)
}

// encode writes JSON without the escapes that only web pages need.
func encode(message any) ([]byte, error) {
	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(message); err != nil {
		return nil, err
	}

	return text.Bytes(), nil
}

// maxFailure is how much of Helm's words is passed on, in bytes. Written as JSON, it
// may grow to six times that.
const maxFailure = 8 << 10

func short(failure *render.Failure) *render.Failure {
	return &render.Failure{Stage: failure.Stage, Text: failure.Text[:min(len(failure.Text), maxFailure)]}
}

func tooLarge(format string, bytes int) *render.Failure {
	return &render.Failure{Stage: render.StageSize, Text: fmt.Sprintf(format, bytes>>20)}
}

// schemaURL is the name that Helm gives a chart's schema of values.
const schemaURL = "file:///values.schema.json"

// dropOutsideSchemas takes those schemas of values out of a chart that refer to
// something outside the chart, or are no schemas, and returns the names of their charts. Helm would
// read a reference itself: files of the controller's disk, and any address,
// whatever it leads to and however much comes from there.
func dropOutsideSchemas(ch *chart.Chart) []string {
	var dropped []string

	if len(ch.Schema) > 0 && leadsOutside(ch.Schema) {
		ch.Schema = nil
		dropped = append(dropped, ch.Name())
	}

	for _, dependency := range ch.Dependencies() {
		dropped = append(dropped, dropOutsideSchemas(dependency)...)
	}

	return dropped
}

// leadsOutside reports whether a schema needs something that is not in it. It
// reads it just as Helm does, with the same library. One that is broken counts
// as well: Helm could find a reference in it before it finds the fault.
func leadsOutside(schema []byte) (outside bool) {
	defer func() {
		if recover() != nil {
			outside = true
		}
	}()

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return false // Helm gets no further, either, and says what is wrong
	}

	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loaderFunc(func(url string) (any, error) {
		if strings.HasPrefix(url, "urn:") {
			return true, nil // Helm asks nobody for these
		}

		return nil, errors.New("nothing outside the chart is read")
	}))

	if err := compiler.AddResource(schemaURL, document); err != nil {
		return true
	}

	_, err = compiler.Compile(schemaURL)

	return err != nil
}

// loaderFunc is a jsonschema.URLLoader.
type loaderFunc func(url string) (any, error)

// Load implements jsonschema.URLLoader.
func (l loaderFunc) Load(url string) (any, error) { return l(url) }
