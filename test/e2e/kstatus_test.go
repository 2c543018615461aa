package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Flux, Argo CD and kubectl plugins judge objects by kstatus: new and waiting objects are in
// progress, stalled ones have failed, finished ones are current, and so is a suspended edit of one.
func TestKstatus(t *testing.T) {
	t.Parallel()

	f := newFleet(t)

	f.waitKstatus("oconn", "omni", status.CurrentStatus)
	f.apply(clusterManifest("c"))
	f.waitKstatus("ocl", "c", status.InProgressStatus)
	f.apply(controlPlaneManifest("cp", "c", f.machines[0]))

	for resource, name := range map[string]string{"ocl": "c", "ocp": "cp"} {
		f.waitKstatus(resource, name, status.CurrentStatus)
	}

	f.apply(clusterManifest("c", "  suspend: true", "  labels: {a: b}"))
	f.waitKstatus("ocl", "c", status.CurrentStatus)

	f.apply(controlPlaneManifest("second", "c", f.machines[1]))
	f.apply(clusterManifest("c"))
	f.waitKstatus("ocl", "c", status.FailedStatus)
	f.run("delete", "ocp", "second")
	f.waitKstatus("ocl", "c", status.CurrentStatus)
}

func (s *space) waitKstatus(resource, name string, want status.Status) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%s/%s to be %s", resource, name, want), func() error {
		return followObject(s, resource, name, func(body json.RawMessage, err error) error {
			if err != nil {
				return err
			}

			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(body); err != nil {
				return err
			}

			result, err := status.Compute(object)
			if err == nil && result.Status != want {
				err = fmt.Errorf("%s: %s", result.Status, result.Message)
			}

			return err
		})
	})
}
