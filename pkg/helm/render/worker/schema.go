package worker

import (
	"bytes"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

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
