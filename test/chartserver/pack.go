package chartserver

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Chart is a chart to pack.
type Chart struct {
	// Name and Version are written into Chart.yaml unless Files has one.
	Name, Version string
	// Files are the chart's files by path inside it, such as templates/config.yaml.
	Files map[string]string
}

// ConfigMapChart is a chart of one ConfigMap whose data are .Values.data, which
// is {greeting: hello} by default.
func ConfigMapChart(name, version string) Chart {
	return Chart{Name: name, Version: version, Files: map[string]string{
		"values.yaml": "data:\n  greeting: hello\n",
		"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  chart: {{ .Chart.Version | quote }}
{{- range $key, $value := .Values.data }}
  {{ $key }}: {{ $value | quote }}
{{- end }}
`,
	}}
}

// Pack returns the chart's archive. The same chart gives the same bytes. Files
// are in memory only, so it panics on what cannot happen.
func (c Chart) Pack() []byte {
	files := maps.Clone(c.Files)
	if files == nil {
		files = map[string]string{}
	}

	if _, ok := files["Chart.yaml"]; !ok {
		files["Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\nappVersion: app-%s\n", c.Name, c.Version, c.Version)
	}

	var packed bytes.Buffer

	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)

	for _, name := range slices.Sorted(maps.Keys(files)) {
		must(archive.WriteHeader(&tar.Header{
			Name: c.Name + "/" + name, Mode: 0o644, Size: int64(len(files[name])), ModTime: time.Unix(0, 0),
		}))

		_, err := archive.Write([]byte(files[name]))
		must(err)
	}

	must(archive.Close())
	must(zipped.Close())

	return packed.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Digest is the sha256 of data in the form sha256:<hex>.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)

	return "sha256:" + hex.EncodeToString(sum[:])
}
