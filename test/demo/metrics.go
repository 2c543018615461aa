package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"omni.texashpc.com/omni-cluster-operator/test/env"
)

const (
	// scrapePause is the pause between two scrapes. A recording says that they are recordedStep apart, so that half a
	// minute of a demonstration is a quarter of an hour in a dashboard.
	scrapePause  = time.Second
	recordedStep = "30s"
	// mostExposed bounds what one program exposes, in bytes.
	mostExposed = 64 << 20
)

// keptBuckets are the bounds of histograms that a recording keeps: any part of them is a histogram.
var keptBuckets = []string{"0.005", "0.025", "0.1", "0.5", "1", "5", "10", "60", "+Inf"}

// recording is what the programs expose over time, as far as alerts and dashboards read it.
type recording struct {
	path  string
	names map[string]bool

	began   time.Time
	scrapes int
	series  map[string]map[int]string // values by scrape
	done    sync.WaitGroup
	stop    context.CancelFunc
	err     error
}

// record begins to scrape both programs.
func (d *demo) record(ctx context.Context, path string) (*recording, error) {
	names, err := metricsRead()
	if err != nil {
		return nil, err
	}

	r := &recording{path: path, names: names, began: time.Now(), series: map[string]map[int]string{}}
	ctx, r.stop = context.WithCancel(ctx)

	r.done.Go(func() {
		for ctx.Err() == nil && r.err == nil {
			r.err = d.scrape(ctx, r)

			select {
			case <-ctx.Done():
			case <-time.After(scrapePause):
			}
		}
	})

	return r, nil
}

// scrape reads both programs once.
func (d *demo) scrape(ctx context.Context, r *recording) error {
	controller, err := d.stack.Controller.Metrics(ctx)
	if err != nil {
		return ignoreEnd(ctx, err)
	}

	apiserver, err := exposed(ctx, d.stack.OmniAPIServer.RESTConfig())
	if err != nil {
		return ignoreEnd(ctx, err)
	}

	r.add("omni-controller-metrics", "omni-controller-0", controller)
	r.add("omni-apiserver", "omni-apiserver-0", apiserver)
	r.scrapes++

	return nil
}

// ignoreEnd is nil for what fails because the recording ends.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}

	return err
}

// exposed reads the metrics of omni-apiserver as an administrator.
func exposed(ctx context.Context, config *rest.Config) (string, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", fmt.Errorf("read the metrics: %w", err)
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/metrics", http.NoBody)
	if err != nil {
		return "", fmt.Errorf("read the metrics: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return "", fmt.Errorf("read the metrics: %w", err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(io.LimitReader(response.Body, mostExposed))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("read the metrics: %s", response.Status)
	}

	return string(text), err
}

// add takes the samples that are read by alerts and dashboards, with the labels that a scrape of the Pod has.
func (r *recording) add(job, pod, text string) {
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 || line[0] == '#' {
			continue
		}

		name, labels, _ := strings.Cut(line[:at], "{")
		if !r.names[name] || !kept(labels) {
			continue
		}

		labels = strings.TrimSuffix(labels, "}")
		if labels != "" {
			labels = "," + strings.TrimSuffix(labels, ",")
		}

		series := fmt.Sprintf("%s{job=%q,instance=%q,pod=%q%s}", name, job, pod, pod, labels)
		if r.series[series] == nil {
			r.series[series] = map[int]string{}
		}

		r.series[series][r.scrapes] = r.value(name, strings.TrimSpace(line[at:]))
	}
}

// value is a sample as it is recorded: a point in time counts from the begin of the recording.
func (r *recording) value(name, sample string) string {
	at, err := strconv.ParseFloat(sample, 64)
	if err != nil || !strings.HasSuffix(name, "_timestamp_seconds") {
		return sample
	}

	return strconv.FormatFloat(math.Round(at-float64(r.began.Unix())), 'f', -1, 64)
}

// bound is the label of a histogram's bucket.
var bound = regexp.MustCompile(`\ble="([^"]*)"`)

// kept reports whether a series is not a bucket that is left out.
func kept(labels string) bool {
	found := bound.FindStringSubmatch(labels)

	return found == nil || slices.Contains(keptBuckets, found[1])
}

// write ends the recording, and writes it in the notation of Prometheus' own tests. Series that never had a value but
// zero are left out, unless nothing else has their name.
func (r *recording) write() error {
	r.stop()
	r.done.Wait()

	if r.err != nil {
		return r.err
	}

	moved := map[string]bool{}

	for series, values := range r.series {
		if slices.ContainsFunc(slices.Collect(maps.Values(values)), func(value string) bool { return value != "0" }) {
			name, _, _ := strings.Cut(series, "{")
			moved[name] = true
			moved[series] = true
		}
	}

	file, err := os.Create(r.path)
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}

	out := bufio.NewWriter(file)
	fmt.Fprintf(out, "load %s\n", recordedStep)

	for _, series := range slices.Sorted(maps.Keys(r.series)) {
		if name, _, _ := strings.Cut(series, "{"); moved[name] && !moved[series] {
			continue
		}

		fmt.Fprintf(out, "  %s%s\n", series, r.values(series))
	}

	return errors.Join(out.Flush(), file.Close())
}

// values are those of a series at every scrape; _ stands for none.
func (r *recording) values(series string) string {
	var text strings.Builder

	for i := range r.scrapes {
		value, found := r.series[series][i]
		if !found {
			value = "_"
		}

		text.WriteString(" " + value)
	}

	return text.String()
}

// metricsRead are the names of the metrics that the alerts and dashboards of the chart read.
func metricsRead() (map[string]bool, error) {
	root, err := env.RepositoryRoot()
	if err != nil {
		return nil, err
	}

	chart := filepath.Join(root, "artifacts", "chart", "omni-cluster-operator")
	files, err := filepath.Glob(filepath.Join(chart, "dashboards", "*.json"))

	if err != nil {
		return nil, err
	}

	names := map[string]bool{}

	for _, path := range append(files, filepath.Join(chart, "alerts.yaml"), filepath.Join(chart, "templates", "monitoring.yaml")) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read what the metrics are for: %w", err)
		}

		// More than the names of metrics, which does no harm.
		for _, name := range regexp.MustCompile(`\b[a-z]+_[a-z0-9_]+\b`).FindAllString(string(text), -1) {
			names[name] = true
		}
	}

	return names, nil
}
