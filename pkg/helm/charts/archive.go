package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

const (
	// maxNesting bounds charts that are packed inside charts.
	maxNesting = 8
	// tarBlock is what each file of an archive takes at least, in bytes.
	tarBlock = 512
)

// Archive is a packed chart that was checked. It does not change. Its bytes are not kept: who has an Archive may wait for
// hours.
type Archive struct {
	fetcher  *Fetcher
	source   Source
	resolved Resolved
}

// Resolved says which chart it is.
func (a *Archive) Resolved() Resolved { return a.resolved }

// String is the name and the version that the repository gives it.
func (a *Archive) String() string { return a.resolved.Name + " " + a.resolved.Version }

// Archive returns the gzipped tar file, which must not be changed: from the cache, or it is downloaded again. Errors are
// *Error.
func (a *Archive) Archive(ctx context.Context) (data []byte, err error) {
	err = a.fetcher.with(ctx, &a.source, func(ctx context.Context, s *sourceClient) error {
		data, err = a.fetcher.archive(ctx, s, &a.source, &a.resolved)

		return err
	})

	return data, err
}

// Invalid makes the error of an archive that holds no chart; why says what is wrong
// with it.
func (a *Archive) Invalid(why string) error {
	return fail(Invalid, "chart %s %s", a, redact.Line(why))
}

// Accept returns an error if the chart inside of the archive, which says this of
// itself, is not the one that was meant, or cannot be installed.
func (a *Archive) Accept(metadata *chart.Metadata) error {
	if metadata.Type == "library" {
		return fail(Invalid, "chart %s is a library: it cannot be installed by itself", a)
	}

	// A signature is of a file, under the name that the index gives it.
	if a.source.Keyring != nil && (metadata.Name != a.resolved.Name || metadata.Version != a.resolved.Version) {
		return fail(Unverified, "chart %s: %s", a, redact.Line(render.OtherChart(metadata.Name, metadata.Version).Error()))
	}

	return nil
}

// checkSize counts what a chart holds when it is unpacked, without unpacking
// it, and fails as soon as that exceeds the limit.
func checkSize(data []byte, limit int64) error {
	err := count(bytes.NewReader(data), &budget{stream: limit, files: limit}, 0)
	if errors.Is(err, errBudget) {
		return fail(TooLarge, "the chart is larger than the limit of %d MiB when it is unpacked", limit>>20)
	}

	if err != nil {
		return fail(Invalid, "the chart is not a gzipped tar archive: %s", redact.Line(err.Error()))
	}

	return nil
}

// errBudget is a chart that is too large.
var errBudget = errors.New("too large")

// budget is what a chart may still hold. A stream has more than its files, by
// headers and padding, but less if files are sparse: each has a limit of its own.
type budget struct{ stream, files int64 }

// spend takes something off a budget.
func spend(left *int64, bytes int64) error {
	if *left -= bytes; *left < 0 {
		return errBudget
	}

	return nil
}

// count takes the size of everything in an archive, and in the archives of
// subcharts inside it, off remaining.
func count(packed io.Reader, remaining *budget, depth int) error {
	if depth > maxNesting {
		return errBudget
	}

	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	defer unzipped.Close()

	// Headers and padding are read by the tar reader itself and count, too.
	entries := tar.NewReader(&budgetReader{reader: unzipped, remaining: &remaining.stream})

	for {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		if err := errors.Join(spend(&remaining.stream, tarBlock), spend(&remaining.files, header.Size)); err != nil {
			return err
		}

		if !header.FileInfo().IsDir() && isSubchart(header.Name) {
			if err := count(entries, remaining, depth+1); err != nil {
				return err
			}
		}
	}
}

// isSubchart reports whether Helm unpacks a file of a chart as another chart. Like
// Helm it takes names with backslashes, as archives of Windows have them, and
// does not mind slashes and dots at the end.
func isSubchart(name string) bool {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))

	return strings.HasSuffix(name, ".tgz") && path.Base(path.Dir(name)) == "charts"
}

// budgetReader fails when more than the budget was read.
type budgetReader struct {
	reader    io.Reader
	remaining *int64
}

// Read implements io.Reader.
func (b *budgetReader) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)

	if err := spend(b.remaining, int64(n)); err != nil {
		return 0, err
	}

	return n, err
}

// The bounds of what repositories and registries send; how long files may be stands beside what reads them. A list of
// empty objects takes a hundred times its length when it is decoded.
const (
	// maxDepth is how deep anything may be nested.
	maxDepth = 64
	// maxSmallNodes is for manifests, tokens and Docker configurations, which have some tens of values.
	maxSmallNodes = 10_000
	// maxTokenBytes is the longest answer of a token service.
	maxTokenBytes = 1 << 20
	// maxTags is how many tags one chart may have, on all pages together.
	maxTags = 100_000
	// maxTag is how long a tag may be, by the OCI specification.
	maxTag = 128
)

// decodeJSON reads a JSON text of at most so many values. Its errors never quote the text; one is a
// *foreign.LimitError.
func decodeJSON(ctx context.Context, text []byte, nodes int, into any) error {
	if !json.Valid(text) {
		return foreign.ErrSyntax
	}

	return foreign.Unmarshal(ctx, text, foreign.Limits{Bytes: len(text), Depth: maxDepth, Nodes: nodes, Expanded: len(text)}, into)
}

// unreadable explains why a text could not be read: it is too large, or something else than what was asked for.
func unreadable(err error, at, what string) error {
	var exceeded *foreign.LimitError
	if errors.As(err, &exceeded) {
		return fail(TooLarge, "%s: the %s %s", at, what, exceeded)
	}

	return fail(Invalid, "%s answers with something that is no %s", at, what)
}
