package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Policy is an OmniRolloutPolicy in parsed form.
type Policy struct {
	// Object is the policy as the API has it.
	Object *v1alpha1.OmniRolloutPolicy

	selector labels.Selector
	stages   []labels.Selector // nil: takes every cluster
	freezes  []Freeze

	// calendarStates caches the states of calendars during Evaluate; nil otherwise.
	calendarStates map[calendarKey]CalendarState
}

// calendarKey identifies a calendar: a stage, and the cluster's own time zone.
type calendarKey struct {
	stage int
	zone  string
}

// New parses a policy; it returns nil with an error. The error names the invalid field. The API refuses such policies, so an invalid one was stored
// under other rules, or names a time zone that this build does not know.
func New(object *v1alpha1.OmniRolloutPolicy) (*Policy, error) {
	p := &Policy{Object: object}

	var err error
	if p.selector, err = selectorOf(object.Spec.ClusterSelector); err != nil {
		return nil, fmt.Errorf("spec.clusterSelector: %w", err)
	}

	for i, one := range object.Spec.Stages {
		var selector labels.Selector
		if one.ClusterSelector != nil {
			if selector, err = selectorOf(one.ClusterSelector); err != nil {
				return nil, fmt.Errorf("spec.stages[%d].clusterSelector: %w", i, err)
			}
		}

		p.stages = append(p.stages, selector)

		if _, err = p.calendar(i, ""); err != nil {
			return nil, fmt.Errorf("spec.stages[%d].windows: %w", i, err)
		}

		if err = checkShares(one); err != nil {
			return nil, fmt.Errorf("spec.stages[%d]: %w", i, err)
		}
	}

	for _, freeze := range object.Spec.Freezes {
		p.freezes = append(p.freezes, Freeze{Name: freeze.Name, From: freeze.From.UTC(), Until: freeze.Until.UTC()})
	}

	return p, nil
}

func selectorOf(selector *v1alpha1.ClusterSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(selector.LabelSelector()) // nil selects nothing
}

func checkShares(one v1alpha1.RolloutStage) error {
	if _, err := ConcurrentOf(orOne(one.MaxConcurrent), 1); err != nil {
		return fmt.Errorf("maxConcurrent: %w", err)
	}

	if _, err := NeededOf(orOne(one.MinQualified), 1); err != nil {
		return fmt.Errorf("minQualified: %w", err)
	}

	return nil
}

func orOne(value *intstr.IntOrString) intstr.IntOrString {
	return ptr.Deref(value, intstr.FromInt32(1))
}

// Selects reports whether the policy is for a cluster with these labels.
func (p *Policy) Selects(cluster *v1alpha1.OmniCluster) bool {
	return p.selector.Matches(labels.Set(cluster.Labels))
}

// MaySelect reports whether the policy may be for a cluster: it selects the cluster, or is nil because New could not parse
// it. Nobody knows which clusters such a policy is for, so the changes of all of them wait.
func (p *Policy) MaySelect(cluster *v1alpha1.OmniCluster) bool {
	return p == nil || p.Selects(cluster)
}

// StageOf returns the stage of a cluster that the policy selects; -1 if no stage takes it.
func (p *Policy) StageOf(cluster *v1alpha1.OmniCluster) int {
	return StageOf(p.stages, labels.Set(cluster.Labels))
}

// Gates reports whether changes of a kind wait for their turn.
func (p *Policy) Gates(kind v1alpha1.ChangeKind) bool {
	return kind != "" && (len(p.Object.Spec.Changes) == 0 || slices.Contains(p.Object.Spec.Changes, kind))
}

// DeadlineOf returns how long a cluster may take to be Ready with its changes under a policy.
func DeadlineOf(policy *v1alpha1.OmniRolloutPolicy) time.Duration {
	return policy.Spec.ProgressDeadline.OrDefault(defaultOf(v1alpha1.DefaultProgressDeadline))
}

func defaultOf(duration v1alpha1.Duration) time.Duration { return duration.OrDefault(0) }

// StageName says which stage a number is, for people.
func (p *Policy) StageName(number int) string {
	return fmt.Sprintf("stage %q (%d of %d)", p.Object.Spec.Stages[number].Name, number+1, len(p.stages))
}

// status returns a stage's part of the policy's status; the zero value if there is none.
func (p *Policy) status(number int) v1alpha1.RolloutStageStatus {
	for _, one := range p.Object.Status.Stages {
		if one.Name == p.Object.Spec.Stages[number].Name {
			return one
		}
	}

	return v1alpha1.RolloutStageStatus{}
}

// weekdays are the days as the API writes them.
var weekdays = map[v1alpha1.Weekday]time.Weekday{ //nolint:gochecknoglobals // a table
	v1alpha1.Monday: time.Monday, v1alpha1.Tuesday: time.Tuesday, v1alpha1.Wednesday: time.Wednesday, v1alpha1.Thursday: time.Thursday,
	v1alpha1.Friday: time.Friday, v1alpha1.Saturday: time.Saturday, v1alpha1.Sunday: time.Sunday,
}

// calendar returns when changes of a stage may begin. A cluster's own time zone replaces the policy's.
func (p *Policy) calendar(number int, zone string) (Calendar, error) {
	calendar := Calendar{Freezes: p.freezes}

	for _, one := range p.Object.Spec.Stages[number].Windows {
		weekly, err := weeklyOf(one, zone)
		if err != nil {
			return Calendar{}, err
		}

		calendar.Windows = append(calendar.Windows, weekly)
	}

	return calendar, nil
}

func weeklyOf(one v1alpha1.MaintenanceWindow, zone string) (Weekly, error) {
	if zone == "" {
		zone = one.TimeZone
	}

	location, err := Zone(zone)
	if err != nil {
		return Weekly{}, err
	}

	start, err := time.Parse("15:04", one.Start)
	if err != nil {
		return Weekly{}, fmt.Errorf("start %q is not a time of day such as 02:00", one.Start)
	}

	duration, err := one.Duration.Parse()
	if err != nil {
		return Weekly{}, fmt.Errorf("duration: %w", err)
	}

	weekly := Weekly{Hour: start.Hour(), Minute: start.Minute(), Duration: duration, Zone: location}
	for _, day := range one.Days {
		weekly.Days = append(weekly.Days, weekdays[day])
	}

	return weekly, nil
}

// Selection has the OmniRolloutPolicies of a namespace that concern a cluster.
type Selection struct {
	// Policy is the one that concerns the cluster; nil if it cannot be read, or if several select the cluster.
	Policy *Policy
	// Name is the policy's name, or that of one of several; empty if no policy concerns the cluster.
	Name string
	// Object is the policy of that name as the API has it, also if it cannot be read; nil if no policy concerns the cluster.
	Object *v1alpha1.OmniRolloutPolicy
	// Conflict has the names, sorted, if more than one policy selects the cluster.
	Conflict []string
	// Unreadable is why the policy cannot be read, as New returned it.
	Unreadable error
	// Left is set if the policy held changes of the cluster before, and does not select it any more.
	Left bool
	// Revision differs if any of this does; empty if no policy concerns the cluster.
	Revision string
}

// SelectionOf returns which of the policies of a namespace concern a cluster of it: the one that selects the cluster, or
// else the one whose changes it still holds by its status. The order of the policies does not count.
func SelectionOf(policies []v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) Selection {
	var (
		found    Selection
		selected []*v1alpha1.OmniRolloutPolicy
		before   *v1alpha1.OmniRolloutPolicy
	)

	for i := range policies {
		object := &policies[i]
		policy, err := New(object)

		switch {
		case policy.MaySelect(cluster):
			found = Selection{Policy: policy, Name: object.Name, Object: object, Unreadable: err, Revision: revisionOf(object)}
			selected = append(selected, object)
		case cluster.Status.Rollout != nil && cluster.Status.Rollout.Policy == object.Name:
			before = object
		}
	}

	switch {
	case len(selected) > 1:
		return conflictOf(selected, cluster)
	case len(selected) == 0 && before != nil && StillConcerns(cluster.Status.Rollout):
		found = Selection{Name: before.Name, Object: before, Left: true, Revision: "left " + revisionOf(before)}
		found.Policy, found.Unreadable = New(before)
	}

	return found
}

// conflictOf returns the selection of several policies. The one that held changes before keeps them: they stay held if it is
// the next to go, and it cannot be deleted meanwhile.
func conflictOf(policies []*v1alpha1.OmniRolloutPolicy, cluster *v1alpha1.OmniCluster) Selection {
	slices.SortFunc(policies, func(a, b *v1alpha1.OmniRolloutPolicy) int { return strings.Compare(a.Name, b.Name) }) // the cache has no order

	keeps := policies[0]

	var names []string

	for _, policy := range policies {
		names = append(names, policy.Name)

		if held := cluster.Status.Rollout; held != nil && held.Policy == policy.Name {
			keeps = policy
		}
	}

	return Selection{Name: keeps.Name, Object: keeps, Conflict: names, Revision: strings.Join(names, ", ")}
}

func revisionOf(policy *v1alpha1.OmniRolloutPolicy) string {
	return fmt.Sprintf("%s/%d", policy.UID, policy.Generation)
}

// StillConcerns reports whether something of a cluster has not ended under its policy, by its status: changes that wait or are
// at work, and also a turn that failed while the cluster is not well yet. The policy keeps such a cluster if it no longer
// selects it.
func StillConcerns(status *v1alpha1.OmniClusterRollout) bool {
	return status != nil && (status.State != "" || len(status.Changes) > 0)
}

// HoldsChanges reports whether changes of a cluster wait or are at work, by its status. After a turn that failed, none are:
// no change would begin if the policy were gone.
func HoldsChanges(status *v1alpha1.OmniClusterRollout) bool {
	if status == nil {
		return false
	}

	// Listed without a state are changes that were held, and cannot be made now for another reason.
	return status.State == v1alpha1.RolloutHeld || status.State == v1alpha1.RolloutAdmitted || len(status.Changes) > 0
}
