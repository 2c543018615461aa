package charts

import (
	"strings"
	"testing"

	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// maxFuzzed is the longest input that is tried, in bytes.
const maxFuzzed = 128 << 10

func FuzzTags(f *testing.F) {
	f.Add([]byte(`{"name":"demo","tags":["1.0.0","1.0.0_b"]}`))
	f.Add([]byte(`{"tags":null}`))
	f.Add([]byte(`{"tags":[` + strings.Repeat(`"",`, 30_000) + `""]}`))
	f.Add([]byte(strings.Repeat("[", 20_000)))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 32<<20, func() { _, _ = parseTags(t.Context(), text, "x") })
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"layers":[{"mediaType":"application/vnd.cncf.helm.chart.content.v1.tar+gzip","digest":"sha256:` + strings.Repeat("0", 64) + `","size":1}],"annotations":{"a":"b"}}`))
	f.Add([]byte(`{"layers":[` + strings.Repeat("{},", 30_000) + `{}]}`))

	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 32<<20, func() { _, _ = parseManifest(t.Context(), text, "x") })
	})
}

func FuzzChoose(f *testing.F) {
	f.Add("1.0.0", "")
	f.Add("1.0.0-rc.1", ">=1.0.0-0 <2 || ~3.1")
	f.Add(strings.Repeat("1.", 30_000), "^1")

	f.Fuzz(func(t *testing.T, version, wanted string) {
		if len(version)+len(wanted) > maxFuzzed {
			return
		}

		foreigntest.WantAllocated(t, 64<<20, func() { _, _ = chooseFrom(t.Context(), []string{version, "1.0.0"}, wanted) })
	})
}
