// Package export reads live clusters from an Omni and makes manifests that take them over unchanged. `kubectl omni
// export` runs it.
//
// pkg/omni reads the clusters, and FromTemplate makes the objects. Run joins the two, and verifies
// each cluster's manifests before it returns them: it renders them as the controller would, and compares the result
// with Omni. Every difference beyond the ownership mark becomes a warning that names the resource, so that nothing is
// dropped silently which our kinds cannot express.
//
// It writes nothing to Omni and reads nothing from Kubernetes.
//
// FromTemplate is the way back of package template: it turns an Omni cluster template into the objects that render to it. What it
// makes renders to a template that Omni cannot tell from the first one. A content (a patch, a group of Kubernetes manifests)
// becomes an inline block if rendering that block gives back the same bytes, and if every tool on the way to the API keeps it as
// it is. Omni compares contents byte for byte, so everything else (comments, another indentation, a fraction, null) goes into a
// ConfigMap and is read through valueFrom, which changes nothing.
package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/observe"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/plan"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni/session"
	"omni.texashpc.com/omni-cluster-operator/pkg/template"
)

// ClusterTimeout bounds the time for reading one cluster.
const ClusterTimeout = 2 * time.Minute

// Options say what to export. Fields are required unless their comment says optional.
type Options struct {
	// Endpoint is the URL of the Omni API.
	Endpoint string
	// Key is the service account key as it was read; KeySource says where it came from, for errors.
	Key       []byte
	KeySource string
	// CABundle is PEM; optional: the system's roots.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any certificate.
	InsecureSkipTLSVerify bool
	// Clusters are names in Omni. All instead exports every cluster that is not being destroyed.
	Clusters []string
	All      bool
	// Namespace of the objects; optional: none is written.
	Namespace string
	// Connection is the name of the OmniConnection to which the OmniClusters refer.
	Connection string
	// WithConnection exports the OmniConnection, too. Secret is the name of the Secret with the key, to which it refers.
	WithConnection bool
	Secret         string
}

// File is the YAML text of some objects.
type File struct {
	// Name is that of the OmniConnection or OmniCluster, with "connection-" or "cluster-" before it.
	Name string
	// Text is one YAML stream.
	Text []byte
}

// Result is an export.
type Result struct {
	// Connection is the OmniConnection, without its Secret; nil without Options.WithConnection: applied to a namespace that has one,
	// it would lead the clusters there to another Omni, or take their key away.
	Connection *File
	// Clusters are in the order of their names in Omni.
	Clusters []File
	// Warnings are for the person who exports; each is one line without secrets.
	Warnings []string
}

// Files are all files, the connection's first.
func (r *Result) Files() []File {
	if r.Connection == nil {
		return r.Clusters
	}

	return append([]File{*r.Connection}, r.Clusters...)
}

// Run exports all requested clusters, or none: if clusters fail, the error names each of them; Options.All asks for those that
// are still there. Every call to Omni has a deadline. Errors name the flag and the remedy, and never contain the key or other
// content.
func Run(ctx context.Context, options Options) (*Result, error) {
	client, err := dial(ctx, options)
	if err != nil {
		return nil, err
	}

	defer func() { _ = client.Close() }() // nothing was written

	names, err := choose(ctx, client.State(), options)
	if err != nil {
		return nil, err
	}

	can, err := capabilities(ctx, client.State(), options)
	if err != nil {
		return nil, err
	}

	result := &Result{}

	if options.WithConnection {
		if result.Connection, err = connectionFile(options); err != nil {
			return nil, err
		}
	}

	return result, result.addClusters(ctx, client.State(), can, names, options)
}

// addClusters exports clusters. If some fail, the error names each of them. One that goes away while all are exported is left
// out, with a warning.
func (r *Result) addClusters(ctx context.Context, st state.State, can *omni.Capabilities, names []string, options Options) error {
	var failures []error

	for _, name := range names {
		file, warnings, err := exportCluster(ctx, st, can, name, options)

		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			r.Clusters = append(r.Clusters, file)
			r.Warnings = append(r.Warnings, warnings...)
		case options.All && isGone(ctx, st, name):
			r.Warnings = append(r.Warnings, fmt.Sprintf("cluster %q is not in the export: it was destroyed, or its destruction began, while the export ran", name))
		default:
			failures = append(failures, fmt.Errorf("cluster %q: %w", name, err))
		}
	}

	return errors.Join(failures...)
}

// isGone reports whether Omni has no such cluster any more, or destroys it.
func isGone(ctx context.Context, st state.State, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	live, err := omni.Inspect(ctx, st, name)

	return err == nil && (!live.Exists || live.TearingDown)
}

func dial(ctx context.Context, options Options) (*session.Client, error) {
	key, err := session.ParseServiceAccountKey(options.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", options.KeySource, err)
	}

	client, err := session.Dial(ctx, session.Config{
		Endpoint: options.Endpoint, Key: key, CABundle: options.CABundle, InsecureSkipTLSVerify: options.InsecureSkipTLSVerify,
	})
	if err != nil {
		return nil, explain(err, options)
	}

	return client, nil
}

// explain names the flag that may be wrong.
func explain(err error, options Options) error {
	message := omni.Message(err)

	switch omni.Classify(err) { //nolint:exhaustive // the rest has nothing to do with a flag
	case omni.ClassKeyExpired, omni.ClassKeyNotYetValid, omni.ClassKeyInvalid, omni.ClassUnauthenticated:
		return fmt.Errorf("%s: %s", options.KeySource, message)
	case omni.ClassDenied:
		return fmt.Errorf("%s: the service account's role does not allow to read clusters (Reader is needed): %s",
			options.KeySource, omni.Sanitize(err.Error()))
	case omni.ClassTLS:
		return fmt.Errorf("--ca-file (the CA of %s, PEM; the system's roots without it): %s", options.Endpoint, message)
	case omni.ClassUnreachable:
		return fmt.Errorf("--endpoint: %s", message)
	case omni.ClassRefused:
		if errors.Is(err, omni.ErrEndpoint) {
			return fmt.Errorf("--endpoint: %s", message)
		}

		// The call failed before it reached Omni.
		if errors.Is(err, omni.ErrNotExportable) {
			return errors.New(omni.Sanitize(err.Error()))
		}
	}

	return errors.New(message)
}

// capabilities asks what Omni serves.
func capabilities(ctx context.Context, st state.State, options Options) (*omni.Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	omni.RegisterTypes()

	can, err := omni.ReadCapabilities(ctx, st, []resource.Type{omni.MachineInstallDiskConfigType})
	if err != nil {
		return nil, explain(err, options)
	}

	return can, nil
}

// choose checks the names first, so that a wrong one is found before anything is read.
func choose(ctx context.Context, st state.State, options Options) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, omni.CallTimeout)
	defer cancel()

	existing, err := observe.ListClusters(ctx, st)
	if err != nil {
		return nil, explain(err, options)
	}

	if options.All {
		if len(existing) == 0 {
			return nil, errors.New("--all: this Omni has no clusters that the service account may see")
		}

		return existing, nil
	}

	var unknown []error

	for _, name := range options.Clusters {
		if !slices.Contains(existing, name) {
			unknown = append(unknown, fmt.Errorf("--cluster: Omni has no cluster %q, or it is being destroyed; %s", name, suggest(name, existing)))
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(options.Clusters))), errors.Join(unknown...)
}

func exportCluster(ctx context.Context, st state.State, can *omni.Capabilities, name string, options Options) (File, []string, error) {
	ctx, cancel := context.WithTimeout(ctx, ClusterTimeout)
	defer cancel()

	installDisks := can.Serves(omni.MachineInstallDiskConfigType)

	exported, err := observe.Export(ctx, st, name, installDisks)
	if err != nil {
		return File{}, nil, explain(err, options)
	}

	objects, err := FromTemplate(ctx, exported.Template, ObjectOptions{
		Namespace: options.Namespace, Connection: options.Connection, Adopt: true,
	})
	if err != nil {
		return File{}, nil, fmt.Errorf("cannot be expressed: %s", omni.Sanitize(err.Error()))
	}

	text, err := render(objects)
	if err != nil {
		return File{}, nil, fmt.Errorf("the exported objects do not fit together: %s", omni.Sanitize(err.Error()))
	}

	inexpressible, err := plan.Inexpressible(ctx, st, text, installDisks)
	if err != nil {
		return File{}, nil, explain(err, options)
	}

	file, err := fileOf("cluster-"+objects.Cluster.Name, takeOverSteps(objects.Cluster), objects.Manifests())

	return file, warningsFor(name, exported, objects, inexpressible), err
}

// proofUID stands in for the UID that the OmniCluster does not have yet.
const proofUID = "00000000-0000-0000-0000-000000000000"

// render renders the objects as the controller will.
func render(objects *Objects) ([]byte, error) {
	documents, err := template.Assemble(objects.Input())
	if err != nil {
		return nil, err
	}

	return documents.Render(objects.Value, template.Mark{UID: proofUID, Name: objects.Cluster.Name})
}

// connectionFile makes the file of the OmniConnection.
func connectionFile(options Options) (*File, error) {
	file, err := fileOf("connection-"+options.Connection, connectionNote(options), []runtime.Object{Connection(ConnectionOptions{
		Name: options.Connection, Namespace: options.Namespace, Endpoint: options.Endpoint, CABundle: options.CABundle,
		InsecureSkipTLSVerify: options.InsecureSkipTLSVerify, Secret: options.Secret,
	})})

	return &file, err
}

// fileOf writes objects below comments.
func fileOf(name string, comments []string, objects []runtime.Object) (File, error) {
	var text bytes.Buffer

	for _, line := range comments {
		fmt.Fprintln(&text, "#", line)
	}

	err := Write(&text, objects)

	return File{Name: name, Text: text.Bytes()}, err
}

// takeOverSteps are the comments of a cluster's file: what it does as it is, and what to change when. They hold names of objects
// only: a name in Omni could end the comment.
func takeOverSteps(cluster *v1alpha1.OmniCluster) []string {
	object := "omnicluster " + cluster.Name
	if cluster.Namespace != "" {
		object += " -n " + cluster.Namespace
	}

	return []string{
		"OmniCluster " + cluster.Name + ", exported from Omni. Applied as it is, this file changes nothing in Omni, and deleting it destroys nothing there.",
		fmt.Sprintf("1. Apply it to the namespace of OmniConnection %s, which is not in this file.", cluster.Spec.ConnectionRef.Name),
		"2. Read the plan: kubectl get " + object + " -o jsonpath='{.status.plan.diff}'",
		"   If it has more than the owner's mark of the Cluster, correct the documents first.",
		"3. Change changePolicy to Apply, and apply the file again: that takes the cluster over.",
		"   It is over when this prints nothing: kubectl get " + object + " -o jsonpath='{.status.adopting}'",
		"4. Leave deletePolicy.orphan as it is, or change it to false: from then on deleting the OmniCluster destroys the cluster in Omni.",
	}
}

// connectionNote are the comments of the connection's file.
func connectionNote(options Options) []string {
	return []string{
		fmt.Sprintf("OmniConnection %s. If the namespace has one of this name, do not apply this: it replaces the endpoint and the Secret for every",
			options.Connection),
		fmt.Sprintf("cluster of that connection. The key belongs into Secret %s, which is not in this file.", options.Secret),
	}
}
