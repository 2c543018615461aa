package helm

import (
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// verdict is what becomes of an object that a new revision does not name any more.
type verdict int

const (
	// verdictRemoved: the release made it, or had it in effect.
	verdictRemoved verdict = iota
	// verdictForeign: it does not bear the marks of the release.
	verdictForeign
	// verdictAdopted: a revision that was never in effect took it over.
	verdictAdopted
)

// chooseRemovable makes an upgrade or a rollback leave objects that are not the release's: Helm removes what the replaced revision
// named and the new one does not, whoever has it by now. Helm's own uninstall looks at the marks. What attempts have left
// that failed is removed as well.
func (c *Client) chooseRemovable(x *execution, replaced *releasev1.Release) error {
	observed, err := x.storage.list()
	if err != nil {
		return err
	}

	attempted, err := c.objectsOfFailed(x)
	if err != nil {
		return err
	}

	inEffect := observed.attemptsBegan(replaced.Version).IsZero()
	x.guard.Choose = func(due kube.ResourceList) (kube.ResourceList, error) {
		return c.removable(x, due, func(info *resource.Info) time.Time {
			if inEffect {
				return time.Time{}
			}

			return began(attempted, info)
		})
	}

	c.removeLeftovers(x, attempted, replaced.Manifest)

	return nil
}

// removable are those of objects that are in the chart no more which may be removed. It tells of the others. Began is when
// the attempts began that may have made an object and were never in effect; zero for one of a revision that was.
func (c *Client) removable(x *execution, due kube.ResourceList, began func(*resource.Info) time.Time) (kube.ResourceList, error) {
	sorted := map[verdict]kube.ResourceList{}

	for _, info := range due {
		found, err := c.judgeRemoval(x, info, began(info))
		if err != nil {
			return nil, fmt.Errorf("no object was changed, because %s is not in the chart any more, and whether it is still this release's cannot be told: %w",
				drift.Identify(info), err)
		}

		sorted[found] = append(sorted[found], info)
	}

	tellKept(x, "not in the chart any more, and left alone, because they do not bear the marks of this release: ", sorted[verdictForeign])
	tellKept(x, "left in the cluster, because a failed revision did not make them, but took them over (delete them by hand if nobody needs them): ", sorted[verdictAdopted])

	return sorted[verdictRemoved], nil
}

// judgeRemoval looks at the live object. What was there before the attempts began that were never in effect was not made by
// them: both times are the workload cluster's.
func (c *Client) judgeRemoval(x *execution, info *resource.Info, began time.Time) (verdict, error) {
	live, there, err := x.guard.Live(info)
	if err != nil || !there {
		return verdictRemoved, err
	}

	if ours, _ := c.release().Whose(live); !ours {
		return verdictForeign, nil
	}

	object := unstructured.Unstructured{Object: live}
	if made := object.GetCreationTimestamp(); made.Time.Before(began) {
		return verdictAdopted, nil
	}

	return verdictRemoved, nil
}

// goWithout lets an action do without objects of older revisions whose kinds the cluster does not serve any more, and tells of each
// once. What is to be made is never left out.
func (x *execution) goWithout() {
	told := map[drift.Object]bool{}

	x.guard.LeftOut = func(objects []drift.Object) {
		var names []string

		for _, object := range objects {
			if !told[object] {
				names = append(names, object.String())
			}

			told[object] = true
		}

		if len(names) > 0 {
			x.request.note(NoteObjectsGone, x.values.redact("left out, because the workload cluster does not serve their kinds any more, and has no objects of them: "+
				strings.Join(names, ", ")))
		}
	}
}

func tellKept(x *execution, why string, objects kube.ResourceList) {
	var names []string
	for _, info := range objects {
		names = append(names, drift.Identify(info).String())
	}

	if len(names) > 0 {
		x.request.note(NoteObjectsKept, x.values.redact(why+strings.Join(names, ", ")))
	}
}
