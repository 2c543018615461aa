package render

import (
	"encoding/json"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
)

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
