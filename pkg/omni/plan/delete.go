package plan

import (
	"context"
	"fmt"
	"slices"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/omni/client/pkg/omni/resources"
	omnires "github.com/siderolabs/omni/client/pkg/omni/resources/omni"
	"github.com/siderolabs/omni/client/pkg/omni/resources/siderolink"
	"github.com/siderolabs/omni/client/pkg/template"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

// DeleteOptions are the options of Delete.
type DeleteOptions struct {
	// DestroyMachines also removes the cluster's disconnected machines from Omni. Without it, a cluster with dead machines
	// waits for them for ever; with it, until Omni has marked them disconnected (minutes). It never marks those that were shut down.
	DestroyMachines bool
	// InstallDisks is that of Options.
	InstallDisks bool
}

// Delete plans the next step of a whole cluster's deletion. It is re-entrant: plan and apply (with consent for
// EveryChange) again each time the mirror reports a change, until the plan is Empty and Live.Exists is false.
//
// The caller decides whether the cluster may be deleted at all (owner's mark, policy). A locked cluster makes Apply
// fail with ErrClusterLocked.
func Delete(ctx context.Context, st state.State, cluster string, options DeleteOptions) (*Plan, error) {
	seen, err := omni.ReadCluster(ctx, st, cluster)
	if err != nil {
		return nil, err
	}

	result, err := template.WithCluster(cluster).Delete(ctx, st)
	if err != nil {
		return nil, fmt.Errorf("plan the deletion of cluster %q: %w", cluster, err)
	}

	if options.DestroyMachines {
		phases, err := machinePhases(ctx, st, cluster)
		if err != nil {
			return nil, err
		}

		result.Destroy = append(phases, result.Destroy...)
	}

	nodes, err := omni.ListOf(ctx, st, omnires.MachineSetNodeType, cluster)
	if err != nil {
		return nil, err
	}

	if options.InstallDisks {
		if err = addInstallDisks(ctx, st, result, nil, nodes); err != nil {
			return nil, err
		}
	}

	plan := planBuilder{cluster: cluster, nodes: nodesBySet(nodes)}.build(ctx, result, seen)
	plan.Hash, plan.deletion = HashOf(plan.Changes), true

	if plan.uuid, err = omni.ReadUUID(ctx, st, cluster); err != nil {
		return nil, err
	}

	return plan, nil
}

// machinePhases lists what has to be destroyed before the cluster so that disconnected machines do not block it, in the
// order of the library's own operation: the machines' links, the machines' patches. The library's operation begins with
// all extensions of the cluster. This one does not: links can take long, the cluster may be kept meanwhile, and its
// other machines would have lost their extensions. Omni removes the extensions with the cluster.
func machinePhases(ctx context.Context, st state.State, cluster string) ([][]resource.Resource, error) {
	machines, err := omni.ListOf(ctx, st, omnires.MachineStatusType, cluster)
	if err != nil {
		return nil, err
	}

	var links, patches []resource.Resource

	for _, machine := range machines {
		if _, disconnected := machine.Metadata().Labels().Get(omnires.MachineStatusLabelDisconnected); !disconnected {
			continue
		}

		own, err := st.List(ctx,
			resource.NewMetadata(resources.DefaultNamespace, omnires.ConfigPatchType, "", resource.VersionUndefined),
			state.WithLabelQuery(resource.LabelEqual(omnires.LabelMachine, machine.Metadata().ID())),
		)
		if err != nil {
			return nil, fmt.Errorf("list patches of machine %q: %w", machine.Metadata().ID(), err)
		}

		// Only Omni's controllers may destroy the resources that they own.
		own.Items = slices.DeleteFunc(own.Items, func(item resource.Resource) bool { return item.Metadata().Owner() != "" })

		links = append(links, siderolink.NewLink(machine.Metadata().ID(), nil))
		patches = append(patches, own.Items...)
	}

	return [][]resource.Resource{links, patches}, nil
}

// losesDocument reports whether a step takes settings from a machine that the template lists, and of which it has no Machine
// document: that document is gone, because nothing else makes settings of one machine. Kernel arguments of a machine come from
// its set or the cluster, too, so there only arguments that are dropped count.
func (b planBuilder) losesDocument(s step) bool {
	machine := s.change.Machine
	listed := func(set SetState) bool { return slices.Contains(set.Machines, machine) }

	if machine == "" || b.described[machine] || !slices.ContainsFunc(b.wanted, listed) {
		return false
	}

	switch s.change.Type {
	case omnires.ConfigPatchType, omnires.ExtensionsConfigurationType, omni.MachineInstallDiskConfigType:
		return s.change.Action == ActionDestroy
	case omnires.KernelArgsType:
		return dropsKernelArgs(s)
	default:
		return false
	}
}

func dropsKernelArgs(s step) bool {
	old, had := s.old.(*omnires.KernelArgs)
	updated, has := s.new.(*omnires.KernelArgs)

	return had && has && slices.ContainsFunc(old.TypedSpec().Value.GetArgs(), func(arg string) bool {
		return !slices.Contains(updated.TypedSpec().Value.GetArgs(), arg)
	})
}

// ChangeError is one change that failed.
type ChangeError struct {
	// Change is the change that was tried.
	Change Change
	// Class is the class of the cause.
	Class omni.Class
	cause error
	// advice says what to do about the cause; empty if Omni's own words are enough.
	advice string
}

// Error implements error. The text is bounded and safe for conditions.
func (e *ChangeError) Error() string {
	text := fmt.Sprintf("%s %s %q: %s", e.Change.Action, omni.KindOf(e.Change.Type), e.Change.ID, omni.Message(e.cause))
	if e.advice != "" {
		text += "; " + e.advice
	}

	return text
}

// Unwrap returns the raw cause, which Classify can sort.
func (e *ChangeError) Unwrap() error { return e.cause }

// Classified returns the class of the cause, for Classify: the text has lost the code.
func (e *ChangeError) Classified() omni.Class { return e.Class }

// unchanged reports whether an update changes nothing. The texts of patches, manifests and jobs are compared by what
// they hold: each tool that writes into Omni has a format of its own, and Omni reads all of them.
func unchanged(ctx context.Context, old, updated resource.Resource) bool {
	if resource.Equal(old, updated) {
		return true
	}

	was, holdsText := withoutText(old)
	is, alsoHoldsText := withoutText(updated)

	return holdsText && alsoHoldsText && resource.Equal(was, is) && sameContent(ctx, old, updated)
}

// sameContent reports whether the texts of two resources differ in their format at most. A text that cannot be read
// within bounds, or that readers read differently, is different from every other one.
func sameContent(ctx context.Context, old, updated resource.Resource) bool {
	was, readable := content(old)
	is, alsoReadable := content(updated)

	if !readable || !alsoReadable {
		return false
	}

	if was == is {
		return true
	}

	before, err := foreign.ContentSum(ctx, []byte(was), manifestLimits)
	if err != nil {
		return false
	}

	after, err := foreign.ContentSum(ctx, []byte(is), manifestLimits)

	return err == nil && before == after
}

// Inexpressible returns what a template would change in Omni beyond the owner's mark: for an exported template, this is
// what it cannot express. The changes are those of Sync for an adoption, without the update of the Cluster if that only
// adds the mark, and without an install disk that becomes that of templates. Without changes, applying the template changes
// nothing. installDisks is that of Options.
//
// Errors: those of Load and Sync.
func Inexpressible(ctx context.Context, st state.State, template []byte, installDisks bool) ([]Change, error) {
	loaded, err := Load(template)
	if err != nil {
		return nil, fmt.Errorf("check the export: %w", err)
	}

	plan, err := Sync(ctx, st, loaded, Options{EveryDestroyIsDestructive: true, InstallDisks: installDisks})
	if err != nil {
		return nil, fmt.Errorf("compare the export with Omni: %w", err)
	}

	left := slices.Clone(plan.WaitingForOmni)

	for _, s := range plan.steps {
		if !onlyMarks(s) {
			left = append(left, s.change)
		}
	}

	return left, nil
}

// onlyMarks reports whether a step is an update that writes whose a cluster or an install disk is, and nothing else.
func onlyMarks(s step) bool {
	if s.change.Type != omnires.ClusterType && s.change.Type != omni.MachineInstallDiskConfigType || s.change.Action != ActionUpdate {
		return false
	}

	return resource.Equal(withoutMarks(s.old), withoutMarks(s.new))
}

func withoutMarks(item resource.Resource) resource.Resource {
	bare := item.DeepCopy()
	omni.DeleteMarks(bare.Metadata())
	bare.Metadata().Annotations().Delete(omnires.ResourceManagedByClusterTemplates)

	return bare
}
