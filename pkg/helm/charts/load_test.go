package charts_test

import (
	"bytes"
	"context"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts"
)

// load looks into an archive as a worker does it for a release.
func load(archive *charts.Archive) (*chart.Chart, error) {
	data, err := archive.Archive(context.Background())
	if err != nil {
		return nil, err
	}

	loaded, err := loader.LoadArchive(bytes.NewReader(data))
	if err != nil {
		return nil, archive.Invalid(err.Error())
	}

	return loaded, archive.Accept(loaded.Metadata)
}
