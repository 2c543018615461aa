package helm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/drift"
)

// removeLeftovers makes an action remove what attempts before it named that were never in effect, if neither the manifest that Helm
// compares with the new one nor the new one itself names it: nobody would know of it once the new revision is in effect.
func (c *Client) removeLeftovers(x *execution, attempted map[drift.Object]time.Time, compared string) {
	if len(attempted) == 0 {
		return
	}

	x.guard.Left = func() (kube.ResourceList, error) {
		stays, err := c.namesIn(compared + drift.ManifestSeparator + x.storage.made)
		if err != nil {
			return nil, err
		}

		found, err := locate(x, attempted)
		if err != nil {
			return nil, err
		}

		due := found.Filter(func(info *resource.Info) bool {
			return !slices.ContainsFunc(stays, func(one drift.Object) bool { return isNamed(info, one) })
		})

		return c.removable(x, due, func(info *resource.Info) time.Time { return began(attempted, info) })
	}
}

// attempts are the numbers of the revisions that were never in effect since the last one that was, the newest first. The hidden
// one is among them: what it made under names that are made anew with each rendering is known by its record alone, which is
// written over.
func (r *resumable) attempts() ([]int, error) {
	numbers, err := r.numbers()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}

	newest := numbers[len(numbers)-1]

	return slices.DeleteFunc(append([]int{newest}, withObjectsLeft(numbers, r.statuses)...), func(number int) bool {
		return r.statuses[number].good() || r.statuses[number] == StatusUninstalled
	}), nil
}

// recordOf is the record of a revision. It keeps nothing that was not kept before.
func (r *resumable) recordOf(number int) (*releasev1.Release, error) {
	if kept := r.read[key(r.release, number)]; kept != nil {
		return kept, nil
	}

	found, err := r.Driver.Get(key(r.release, number))
	if err != nil {
		return nil, err
	}

	return asRelease(found)
}

// nodesOfName is how many keys and values an object has of which locate knows the name only.
const nodesOfName = 11

// objectsOfFailed are the objects that attempts name, and when the oldest began that names them: what is older than that, none
// has made. Nothing else of the records is kept: they hold whole charts.
func (c *Client) objectsOfFailed(x *execution) (map[drift.Object]time.Time, error) {
	attempts, err := x.storage.attempts()
	if err != nil || len(attempts) == 0 {
		return nil, err
	}

	observed, err := x.storage.list()
	if err != nil {
		return nil, err
	}

	named := map[drift.Object]time.Time{}

	for _, number := range attempts {
		known := slices.IndexFunc(observed.Revisions, func(one Revision) bool { return one.Number == number })
		record, err := x.storage.recordOf(number)

		if errors.Is(err, driver.ErrReleaseNotFound) || known < 0 {
			continue
		}

		if err != nil {
			return nil, fmt.Errorf("read revision %d: %w", number, err)
		}

		if err := c.noteAttempt(x, record, observed.Revisions[known].Created, named); err != nil {
			return nil, fmt.Errorf("read the manifest of revision %d: %w", number, err)
		}

		if name := key(c.target.Name, number); x.storage.read[name] == nil {
			x.memory.forget(name)
		}
	}

	return named, nil
}

// noteAttempt notes the objects that the record of an attempt names, and takes memory for what stays of it.
func (c *Client) noteAttempt(x *execution, record *releasev1.Release, began time.Time, named map[drift.Object]time.Time) error {
	texts := x.values.add(record.Config) // names of objects may come from older values

	objects, err := objectsOf(record.Manifest)
	if err != nil {
		return err
	}

	var names foreign.Size

	for _, object := range objects {
		one := c.named(object)
		if _, known := named[one]; !known {
			names = names.And(foreign.Size{Nodes: nodesOfName, Bytes: len(object.GetAPIVersion()) + len(one.Kind) + len(one.Namespace) + len(one.Name)})
		}

		named[one] = began
	}

	return x.keepOlder(texts, names)
}

// began is when the oldest attempt began that names an object. One of which that is not known counts as older than all:
// it stays.
func began(attempted map[drift.Object]time.Time, info *resource.Info) time.Time {
	var latest time.Time

	for object, began := range attempted {
		if isNamed(info, object) && began.After(latest) {
			latest = began
		}
	}

	if latest.IsZero() {
		return time.Unix(1<<40, 0) // far behind every object
	}

	return latest
}

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
