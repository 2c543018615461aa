package migrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Plan is what a migration would do. Making it changes nothing.
type Plan struct {
	// Objects are the converted objects, in the order of the import.
	Objects []*Converted
	// Problems prevent a migration, besides the refusals of the objects.
	Problems []string
	// Notes are information; they do not prevent a migration.
	Notes []string

	state *state
}

// planOf is pure. The backup is that of the run that goes on; nil if there is none.
func planOf(s *state, b *backup) *Plan {
	p := &Plan{Objects: ConvertAll(s.Objects), Problems: append(problemsOf(s), stoppedEarlier(s, b)...), Notes: notesOf(s), state: s}
	for i, c := range p.Objects {
		c.refuseEarlier(&s.Objects[i], b)
		c.refuseUnrendered(s, b)
	}

	return p
}

// Refused reports whether run would refuse.
func (p *Plan) Refused() bool { return len(p.Problems) > 0 || p.refusedObjects() > 0 }

// Error says in one line why Run would refuse; nil if it would not.
func (p *Plan) Error() error {
	switch {
	case !p.Refused():
		return nil
	case p.refusedObjects() > 0:
		return fmt.Errorf("%d of %d objects are refused, and there are %d problems besides: see above", p.refusedObjects(), len(p.Objects), len(p.Problems))
	default:
		return errors.New(strings.Join(p.Problems, "; "))
	}
}

// refusals says of each refused object why.
func (p *Plan) refusals() error {
	var refused []error

	for _, c := range p.Objects {
		if len(c.Refusals) > 0 {
			refused = append(refused, fmt.Errorf("%s: %v", c.ID(), c.Refusals))
		}
	}

	return errors.Join(refused...)
}

func (p *Plan) refusedObjects() int {
	count := 0

	for _, c := range p.Objects {
		if len(c.Refusals) > 0 {
			count++
		}
	}

	return count
}

// problemsOf returns the problems that have to be resolved first.
func problemsOf(s *state) []string {
	older := olderProblem(s)

	switch {
	case len(s.Definitions) == 0 && older != "":
		return []string{older}
	case len(s.Definitions) == 0:
		return []string{"there are no custom resource definitions of " + v1alpha1.GroupName + ": nothing has to be moved"}
	}

	var problems []string

	if s.registered() {
		problems = append(problems, "APIService "+registration+" is there, and the definitions, too: what is read under their name is this operator's. "+
			"Stop omni-controller, delete the APIService (objects stay in their own storage), and run this again")
	}

	for i := range s.Definitions {
		if !servesVersion(&s.Definitions[i]) {
			problems = append(problems, idOf(&s.Definitions[i])+" does not serve v1alpha1: its objects cannot be read")
		}
	}

	for i := range s.Objects {
		if held := foreignFinalizers(&s.Objects[i]); len(held) > 0 {
			problems = append(problems, fmt.Sprintf("%s has the finalizer %s, which is not the old operator's: its definition could not be deleted. "+
				"Have its owner take it off", idOf(&s.Objects[i]), strings.Join(held, ", ")))
		}
	}

	if older != "" {
		problems = append(problems, older)
	}

	return problems
}

func servesVersion(definition *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")

	return slices.ContainsFunc(versions, func(version any) bool {
		fields, _ := version.(map[string]any)

		return fields["name"] == "v1alpha1" && fields["served"] == true
	})
}

// foreignFinalizers returns finalizers that neither the old operator nor Kubernetes itself sets.
func foreignFinalizers(obj *unstructured.Unstructured) []string {
	return slices.DeleteFunc(obj.GetFinalizers(), func(finalizer string) bool {
		return finalizer == theirFinalizer || obj.GetDeletionTimestamp() != nil
	})
}

// notesOf returns what a person should know.
func notesOf(s *state) []string {
	var notes []string

	if len(s.Deployments) == 0 {
		notes = append(notes, "no Deployment has the labels "+operatorSelector+": if the old operator runs, name its Deployment with --deployment")
	}

	for i := range s.Deployments {
		if by := heldBy(&s.Deployments[i]); by != "" {
			notes = append(notes, fmt.Sprintf("%s is kept by %s, which would start it again: suspend that first", idOf(&s.Deployments[i]), by))
		}
	}

	notes = append(notes, s.Namespaces...)
	holders := map[string]int{}

	for i := range s.Objects {
		if by := heldBy(&s.Objects[i]); by != "" {
			holders[by]++
		}
	}

	for _, by := range slices.Sorted(maps.Keys(holders)) {
		notes = append(notes, fmt.Sprintf("%s keeps %d of the objects, and would take back what is changed on them: suspend it until the migration is over, "+
			"and put what changes into Git before it goes on", by, holders[by]))
	}

	for _, other := range s.OtherWebhooks {
		notes = append(notes, other+" is about "+v1alpha1.GroupName+", and has not the name or the label of the old operator's: it stays, and may refuse what is written. "+
			"If it is the old operator's (nameOverride), step 5 fails: delete it then, and run this again")
	}

	return notes
}

// heldBy names the GitOps tool that applies an object, by its labels and annotations; empty if there is none.
func heldBy(obj *unstructured.Unstructured) string {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()

	for _, tool := range []struct{ name, prefix string }{
		{"Flux Kustomization", "kustomize.toolkit.fluxcd.io"}, {"Flux HelmRelease", "helm.toolkit.fluxcd.io"},
	} {
		if name := labels[tool.prefix+"/name"]; name != "" {
			return fmt.Sprintf("%s %s/%s", tool.name, labels[tool.prefix+"/namespace"], name)
		}
	}

	tracking, _, _ := strings.Cut(annotations["argocd.argoproj.io/tracking-id"], ":")
	if app := cmp.Or(tracking, labels["argocd.argoproj.io/instance"]); app != "" {
		return "Argo CD Application " + app
	}

	return ""
}

// olderGroup is the API group of the first releases of the operator with CRDs. Their objects are not moved. A hub can have
// them beside those of our group, left over from an upgrade, or with an operator of their own that acts on the same clusters.
const olderGroup = "omni.texas-hpc.org"

// olderProblem says what to do about definitions of the older group; empty if there are none.
func olderProblem(s *state) string {
	if len(s.Older) == 0 {
		return ""
	}

	return fmt.Sprintf("the definitions %s are of an older release of the operator with CRDs, which may act on the same clusters; their objects are not moved. "+
		"Do not delete them first: take the steps of \"The older group\" in docs/how-to/migrate.md", strings.Join(s.Older, ", "))
}

// What a run has changed is told by its field manager, and what it was before only by the run's backup. Without that
// file a later run would save, plan and move what the earlier one has made as if its user had written it, and undo
// would restore nothing.

// refuseEarlier refuses an object whose policy was set by an earlier run, if the backup does not have the object.
func (c *Converted) refuseEarlier(old *unstructured.Unstructured, b *backup) {
	if !madeHarmless(old) || b.has(old) {
		return
	}

	c.refuse(strings.Join(harmlessPath(old.GetKind()), "."), "an earlier run changed this: give its backup file (`migrate run --backup`, `migrate undo --backup`). "+
		"If that is lost, scale the old operator up, which puts its finalizers back, and write the policy that you want, "+
		"first another one if it is the one that is there")
	c.Object = nil
}

// stoppedEarlier returns a problem for each Deployment that an earlier run has stopped and the backup does not have.
func stoppedEarlier(s *state, b *backup) []string {
	if len(s.Definitions) == 0 {
		return nil // nothing is left to move, or the run is past all this
	}

	var problems []string

	for i := range s.Deployments {
		at := &s.Deployments[i]
		if replicas(at) > 0 || !onlyWeWrote(at, "spec", "replicas") || b != nil && sameName(b.Deployments, at) != nil {
			continue
		}

		problems = append(problems, fmt.Sprintf("%s: an earlier run changed this (spec.replicas): give its backup file. "+
			"If that is lost, scale it to what it had", idOf(at)))
	}

	return problems
}

// has reports whether the backup has this very object.
func (b *backup) has(obj *unstructured.Unstructured) bool {
	if b == nil {
		return false
	}

	saved := sameName(b.Objects, obj)

	return saved != nil && saved.GetUID() == obj.GetUID()
}
