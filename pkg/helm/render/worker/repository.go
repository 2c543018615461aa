package worker

import (
	"encoding/json"
	"runtime/debug"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/charts/parse"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/render"
)

// largeText is from how many bytes on the memory for a text is given back at once.
const largeText = 1 << 20

// serveIndex reads the index of a repository.
func (w *worker) serveIndex(text []byte) error {
	if len(text) >= largeText {
		defer debug.FreeOSMemory()
	}

	index, err := readIndex(text)
	if err != nil {
		return w.fail(err)
	}

	if err := index.WriteEntries(func(content []byte) error { return render.WriteFrame(w.out, render.KindEntries, content) }); err != nil {
		return err
	}

	return render.WriteFrame(w.out, render.KindDone, nil)
}

func readIndex(text []byte) (index *render.Index, err error) {
	defer panicked(render.StageLoad, "the index makes its parser fail", &err)

	return parse.Index(text)
}

// serveProvenance checks a provenance file.
func (w *worker) serveProvenance(about []byte) error {
	keyring, err := w.next(render.KindKeyring)
	if err != nil {
		return err
	}

	file, err := w.next(render.KindSignature)
	if err != nil {
		return err
	}

	var wanted render.Provenance
	if err := json.Unmarshal(about, &wanted); err != nil {
		return err
	}

	if err := checkProvenance(file, keyring, &wanted); err != nil {
		return w.fail(&render.Failure{Stage: render.StageLoad, Text: err.Error()})
	}

	return render.WriteFrame(w.out, render.KindDone, nil)
}

func checkProvenance(file, keyring []byte, wanted *render.Provenance) (err error) {
	defer panicked(render.StageLoad, "the provenance file makes its parser fail", &err)

	return parse.CheckProvenance(file, keyring, wanted)
}
