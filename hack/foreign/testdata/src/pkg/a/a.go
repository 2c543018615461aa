package a

import (
	"encoding/json"
	"io"

	other "go.yaml.in/yaml/v3"
	"gopkg.in/yaml.v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml/goyaml.v3"
)

type reader[T any] struct{}

func (*reader[T]) read(from io.Reader) {
	_, _ = io.ReadAll(from)
	_ = json.NewDecoder(from).Decode(nil)
}

var load = loader.LoadArchive

func functions() {
	_ = other.Unmarshal(nil, nil)
	_ = yaml.UnmarshalStrict(nil, nil)
	_ = goyaml.NewDecoder(nil)
	_, _ = json.Marshal(nil) // writes
	_ = io.LimitReader(nil, 0)

	_ = func() { _ = json.Unmarshal }
}
