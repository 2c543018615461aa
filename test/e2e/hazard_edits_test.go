package e2e

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// absentCluster is the name of an OmniCluster that does not exist: a typing error.
const absentCluster = "cluster-1"

// editHazards are edits that lead an object away from what it made. docs/concepts/edits.md lists all of them.
func editHazards() []hazard {
	return []hazard{
		{
			name:  "clusterRef edited",
			given: func(f *fleet) { f.apply(settingsManifest(f.machines[0], "c")) },
			when: func(f *fleet) {
				for _, document := range []string{"ow/c-w", "ocp/c-cp", "om/" + f.machines[0]} {
					resource, name, _ := strings.Cut(document, "/")
					f.waitCondition(resource, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
					f.refusedPatch(document, `{"spec":{"clusterRef":{"name":"`+absentCluster+`"}}}`, "spec.clusterRef.name", `OmniCluster "c" counts this object`)
				}

				f.refusedPatch("ow/c-w", `{"spec":{"clusterRef":{"name":"`+absentCluster+`"}}}`, "kubectl delete omniworkers c-w -n "+f.name)
			},
			says: []seen{ready()},
		},
		{
			name: "clusterRef of a typing error corrected",
			when: func(f *fleet) {
				f.apply(workersManifest("late", absentCluster, classOf(pool, 1)))
				f.waitCondition("ow", "late", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonClusterNotFound)
				f.run("patch", "ow", "late", "--type=merge", "-p", `{"spec":{"clusterRef":{"name":"c"}}}`)
				f.waitMachines("c", "late", 1)
			},
			says:     []seen{ready()},
			machines: sizes(2, map[string]int{"late": 1}),
		},
		{
			name:  "refused edits applied by Flux with force",
			given: func(f *fleet) { f.apply(settingsManifest(f.machines[0], "c")) },
			when: func(f *fleet) {
				for _, document := range []string{"ow/c-w", "ocp/c-cp", "om/" + f.machines[0]} {
					resource, name, _ := strings.Cut(document, "/")
					f.waitCondition(resource, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				}

				for _, edit := range []struct{ resource, name, field, value string }{
					{"omniclusters", "c", "spec.clusterName", "other"},
					{"omniclusters", "c", "spec.connectionRef.name", "other"},
					{"omniclusters", "c", "spec.talos.version", "1.13.x"},
					{"omniclusters", "c", "metadata.resourceVersion", "1"},
					{"omnicontrolplanes", "c-cp", "spec.clusterRef.name", absentCluster},
					{"omniworkers", "c-w", "spec.clusterRef.name", absentCluster},
					{"omniworkers", "c-w", "spec.workerSetName", "other"},
					{"omnimachines", f.machines[0], "spec.clusterRef.name", absentCluster},
					{"omnimachines", f.machines[0], "spec.machineID", f.machines[1]},
				} {
					f.applyAsFlux(edit.resource, edit.name, edit.field, edit.value)
				}
			},
			says: []seen{ready()},
		},
		{
			name:  "settings of a machine deleted and made again by force",
			given: func(f *fleet) { f.apply(settingsManifest(f.machines[0], "c")) },
			when: func(f *fleet) {
				f.waitCondition("om", f.machines[0], v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.inTime(func() {
					f.run("delete", "om", f.machines[0])
					f.hesitate("ConfigPatch")
					f.put(settingsManifest(f.machines[0], "c"))
				})
			},
			says: []seen{ready()},
		},
		{
			name: "clusterRef changed by force",
			when: func(f *fleet) {
				f.inTime(func() { f.force(workersManifest("c-w", absentCluster, classOf(pool, 2))) })
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, `OmniWorkers "c-w"`, `"`+absentCluster+`"`, "approvedPlan")},
			then: func(f *fleet) {
				f.force(workersManifest("c-w", "c", classOf(pool, 2)))
				f.ready("c")
				f.unchanged("c")
			},
		},
		{
			name: "clusterRef changed by force, then the document deleted",
			when: func(f *fleet) {
				if !f.inTime(func() { f.force(workersManifest("c-w", absentCluster, classOf(pool, 2))) }) {
					return
				}

				f.says("c", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`)
				f.run("delete", "ow", "c-w")
			},
			says: []seen{stalled(v1alpha1.ReasonAwaitingApproval, `MachineSet "c-c-w"`, `"`+absentCluster+`"`)},
			then: func(f *fleet) {
				f.approve("c")
				f.waitMachines("c", "c-w", 0)
				f.ready("c")
			},
			finally: []string{"MachineSet c-c-w"},
		},
		{
			name:  "list of machines replaced by null",
			given: func(f *fleet) { f.apply(workersManifest("a", "c", "machines: ["+f.machines[1]+"]")) },
			when: func(f *fleet) {
				f.waitCondition("ow", "a", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.inTime(func() {
					out, err := f.try("patch", "ow", "a", "--type=merge", "-p", `{"spec":{"machines":null}}`)
					if want := "Warning: spec.machines: machine " + f.machines[1] + " leaves this set"; err != nil || !strings.Contains(out, want) {
						f.t.Errorf("does not say %q: %v: %s", want, err, out)
					}

					f.hesitate("MachineSetNode")
					f.put(workersManifest("a", "c", "machines: ["+f.machines[1]+"]"))
				})
			},
			says:     []seen{ready()},
			machines: sizes(2, map[string]int{"a": 1}),
		},
		{
			name: "orphan unset by null",
			spec: "  deletePolicy: {orphan: true}",
			when: func(f *fleet) {
				f.warns(`{"spec":{"deletePolicy":null}}`, "spec.deletePolicy.orphan: no longer set: deleting this object destroys the cluster")
			},
			says: []seen{ready()},
		},
		{
			name: "Observe left with a set that was emptied",
			bare: true,
			when: func(f *fleet) {
				f.cluster("c", "")
				f.run("patch", "ocl", "c", "--type=merge", "-p", `{"spec":{"changePolicy":"Observe"}}`)
				f.run("scale", "omniworkers/c-w", "--replicas=0")
				f.says("c", v1alpha1.ConditionSynced, metav1.ConditionFalse, "", `MachineSet "c-c-w"`)
				f.follow("c")
				f.warns(`{"spec":{"changePolicy":null}}`, "spec.changePolicy: no longer Observe: Omni follows the documents now")
			},
			says:     []seen{notSynced(v1alpha1.ReasonWaitingToSettle, `MachineSet "c-c-w"`), ready()},
			machines: sizes(0, nil),
		},
		{
			name: "clusterRef of a written kubeconfig edited",
			when: func(f *fleet) {
				f.apply(strings.Replace(exportManifest("export", "kubeconfig", "automation", "admins"), "{name: demo}", "{name: c}", 1))
				f.waitCondition("oke", "export", v1alpha1.ConditionReady, metav1.ConditionTrue, "")
				f.refusedPatch("oke/export", `{"spec":{"clusterRef":{"name":"other"}}}`, "spec.clusterRef.name", `Secret "kubeconfig"`,
					"kubectl delete omnikubeconfigexport export -n "+f.name)
			},
			says: []seen{ready()},
		},
	}
}

// refusedPatch checks that an edit of an object is refused with an error that has these words.
func (f *fleet) refusedPatch(object, patch string, words ...string) {
	f.t.Helper()

	out, err := f.try("patch", object, "--type=merge", "-p", patch)
	if err == nil {
		f.t.Fatalf("was accepted: %s", out)
	}

	for _, word := range append(words, "immutable") {
		if !strings.Contains(err.Error(), word) {
			f.t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// warns checks that an edit of OmniCluster c is stored with a warning that has these words.
func (f *fleet) warns(patch, words string) {
	f.t.Helper()

	if out, err := f.try("patch", "ocl", "c", "--type=merge", "-p", patch); err != nil || !strings.Contains(out, "Warning: "+words) {
		f.t.Errorf("does not say %q: %v: %s", words, err, out)
	}
}

// force deletes an object and makes it again from a manifest.
func (f *fleet) force(manifest string) {
	f.t.Helper()

	if _, err := f.tryInput(manifest, "replace", "--force", "-f", "-"); err != nil {
		f.t.Fatal(err)
	}
}

// applyAsFlux applies an edit that is refused as Flux does with force: true, which deletes the object if the answer looks to it like that to a
// change of an immutable field (github.com/fluxcd/pkg/ssa/errors).
func (f *fleet) applyAsFlux(resource, name, path, value string) {
	f.t.Helper()

	client := f.ours(resource)
	object := must(client.Get(f.t.Context(), name, metav1.GetOptions{}))(f.t)
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	unstructured.RemoveNestedField(object.Object, "status")

	if err := unstructured.SetNestedField(object.Object, value, strings.Split(path, ".")...); err != nil {
		f.t.Fatal(err)
	}

	_, err := client.Apply(f.t.Context(), name, object, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true, DryRun: dryRun})
	if err == nil || !strings.Contains(err.Error(), path) {
		f.t.Fatalf("%s %s: %s is not refused: %v", resource, name, path, err)
	}

	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) || strings.Contains(err.Error(), "is immutable") || strings.Contains(err.Error(), "immutable field") {
		if err := client.Delete(f.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			f.t.Fatal(err)
		}
	}
}
