package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// spec returns a copy of the spec without fields that are always refused; nil if there is none. A field that names
// files on the old operator's disk has to be rewritten by the user, because only the user has the files.
func (c *Converted) spec(old *unstructured.Unstructured) map[string]any {
	stored, _, err := unstructured.NestedMap(old.Object, "spec")
	if err != nil || stored == nil {
		c.refuse("spec", "is missing")

		return nil
	}

	spec := runtime.DeepCopyJSON(stored)

	c.withoutFile(spec, "templateRoot", "spec.templateRoot",
		"nothing here reads files of a disk: write what the files hold into the object (inline), and remove templateRoot")
	c.withoutFiles(spec, "spec.patches", "patches")

	if kubernetes, ok := spec["kubernetes"].(map[string]any); ok {
		c.withoutFiles(kubernetes, "spec.kubernetes.manifests", "manifests")
	}

	c.withoutEmptyLists(spec)

	return spec
}

// withoutEmptyLists removes lists that the old operator left out of its template because they were empty, as if they were
// not set.
func (c *Converted) withoutEmptyLists(spec map[string]any) {
	for _, name := range []string{"systemExtensions", "kernelArgs"} {
		if list, isList := spec[name].([]any); isList && len(list) == 0 {
			delete(spec, name)
			c.Changes = append(c.Changes, Finding{"spec." + name, "goes: an empty list, which meant nothing, would mean none of them"})
		}
	}
}

// withoutFiles refuses files that the entries of a list name.
func (c *Converted) withoutFiles(of map[string]any, path, list string) {
	entries, _ := of[list].([]any)
	for i := range entries {
		entry, ok := entries[i].(map[string]any)
		if !ok {
			continue
		}

		at := fmt.Sprintf("%s[%d]", path, i)
		c.withoutFile(entry, "file", at+".file", "nothing here reads files of a disk: write what the file holds under "+at+".inline, and remove file")
	}
}

// withoutFile removes a field, and refuses it unless it is empty. A placeholder replaces the missing content: further
// findings about an entry without content would be of no help.
func (c *Converted) withoutFile(of map[string]any, name, path, remedy string) {
	value, set := of[name]
	if !set {
		return
	}

	delete(of, name)

	if text, ok := value.(string); ok && strings.TrimSpace(text) == "" {
		return
	}

	c.refuse(path, remedy)

	if name == "file" && of["inline"] == nil {
		of["valueFrom"] = map[string]any{"configMapKeyRef": map[string]any{"name": "file", "key": "file"}}
	}
}

func nothingToAdapt[P object](P) []Finding { return nil }

func adaptConnection(obj *v1alpha1.OmniConnection) []Finding {
	const consent = "omni-controller refuses it without --allow-insecure-omni"

	var found []Finding

	if scheme, _, _ := strings.Cut(obj.Spec.Endpoint, "://"); scheme == "http" || scheme == "grpc" {
		found = append(found, Finding{"spec.endpoint", "without TLS: " + consent})
	}

	if obj.Spec.InsecureSkipTLSVerify {
		found = append(found, Finding{"spec.insecureSkipTLSVerify", "use spec.caBundle instead; " + consent})
	}

	return found
}

// adaptCluster allows the takeover of the cluster in Omni, which carries no mark of ours.
func adaptCluster(obj *v1alpha1.OmniCluster) []Finding {
	obj.Spec.Adopt = true
	found := []Finding{{"spec.adopt", "true: the cluster in Omni is taken over"}}

	if policy := &obj.Spec.DeletePolicy; policy.Orphan && policy.DestroyMachines {
		policy.DestroyMachines = false

		found = append(found, Finding{"spec.deletePolicy.destroyMachines", "goes: with orphan the cluster stays in Omni, so nothing is destroyed"})
	}

	return found
}

// adaptExport takes the exported Secret over in place, so that its consumers are not affected.
func adaptExport(obj *v1alpha1.OmniKubeconfigExport) []Finding {
	obj.Spec.Adopt = true
	found := []Finding{{"spec.adopt", "true: the Secret is taken over as it is"}}

	if namespace := obj.Spec.TargetSecretRef.Namespace; namespace != "" && namespace != obj.Namespace {
		found = append(found, Finding{"spec.targetSecretRef.namespace", "omni-controller writes to " + namespace + " only with --export-namespaces"})
	}

	return found
}

// adaptSync allows the takeover of the copy, which carries no mark of ours.
func adaptSync(obj *v1alpha1.OmniSecretSync) []Finding {
	if obj.Spec.Adopt {
		return nil // its user wants it so, for good
	}

	obj.Spec.Adopt = true

	return []Finding{{"spec.adopt", "true: the copy in the workload cluster is taken over; false again when it is Ready"}}
}

// adaptRelease allows the takeover of the release, which carries no mark of ours.
func adaptRelease(obj *v1alpha1.OmniHelmRelease) []Finding {
	var found []Finding

	if obj.Spec.MaxHistory == nil {
		obj.Spec.MaxHistory = new(int32(0))
		found = append(found, Finding{"spec.maxHistory", fmt.Sprintf("0: all revisions are kept, as before; without it the first upgrade keeps %d", v1alpha1.DefaultHelmMaxHistory)})
	}

	if obj.Spec.TakeOwnership {
		return found // its user wants it so, for good
	}

	obj.Spec.TakeOwnership = true

	return append(found, Finding{"spec.takeOwnership", "true: the release is taken over, and upgraded; false again when it is Ready"})
}

// noteReferences notes which objects name one of ours that does not exist.
func noteReferences(all []*Converted) {
	there := map[string]bool{}
	for _, c := range all {
		there[c.ID()] = true
	}

	for _, c := range all {
		field, to := "spec.clusterRef.name", v1alpha1.ClusterRefOf(c.Object)
		of := "OmniCluster"

		if cluster, ok := c.Object.(*v1alpha1.OmniCluster); ok {
			field, to, of = "spec.connectionRef.name", cluster.Spec.ConnectionRef.Name, "OmniConnection"
		}

		if to != "" && !there[of+" "+c.Namespace+"/"+to] {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: there is no %s %s in the namespace", field, of, to))
		}
	}
}

// What OmniClusterAddons and an OmniCilium render into the template of a cluster becomes its manifests, which read the Secrets
// that the old operator has rendered into. Omni derives IDs from the positions, so these are those of the old template: behind
// the cluster's own, addons by the name of their manifest, Cilium last, with a patch behind the cluster's own. If Omni has
// something else after all, the plan is not empty, and the cluster stays observed.

const (
	addonKind, ciliumKind = "OmniClusterAddon", "OmniCilium"
	// renderedKey is the key of the manifests in a Secret that the old operator has rendered.
	renderedKey = "manifest.yaml"
)

// rendering is what the old operator renders of one object into the template of a cluster.
type rendering struct {
	of       *Converted
	cluster  string
	manifest v1alpha1.Manifest
	patch    *v1alpha1.Patch // of Cilium
}

// renderingOf reads an object of one of the kinds; nil for another kind, and for one that names no cluster.
func renderingOf(old *unstructured.Unstructured, c *Converted) *rendering {
	text := func(field ...string) string {
		value, _, _ := unstructured.NestedString(old.Object, append([]string{"spec"}, field...)...)

		return value
	}

	secret, name := c.Name+"-addon-manifest", c.Name
	if c.Kind == ciliumKind {
		secret, name = c.Name+"-cilium-manifest", "cilium"
	}

	cluster := text("clusterRef", "name")
	if c.Kind != addonKind && c.Kind != ciliumKind || cluster == "" || old.GetDeletionTimestamp() != nil {
		return nil
	}

	return &rendering{of: c, cluster: cluster, manifest: v1alpha1.Manifest{
		Name: cmp.Or(text("manifestName"), name), Mode: cmp.Or(v1alpha1.ManifestMode(text("mode")), v1alpha1.ManifestFull),
		ValueFrom: &v1alpha1.ValueSource{SecretKeyRef: &v1alpha1.KeyReference{Name: secret, Key: renderedKey}},
	}}
}

// rank puts Cilium behind the addons.
func (r *rendering) rank() int {
	if r.patch != nil {
		return 1
	}

	return 0
}

// carryRendered moves what is rendered into the OmniClusters, of objects and what they were converted to.
func carryRendered(old []unstructured.Unstructured, all []*Converted) {
	var renderings []*rendering

	for i, c := range all {
		if r := renderingOf(&old[i], c); r != nil && r.readPatch(&old[i]) {
			renderings = append(renderings, r)
		}
	}

	slices.SortStableFunc(renderings, func(a, b *rendering) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.manifest.Name, b.manifest.Name))
	})

	for _, cluster := range all {
		if cluster.Kind == "OmniCluster" {
			cluster.carry(&renderings)
		}
	}

	for _, r := range renderings {
		r.of.Refusals = nil
		r.of.refuse("spec.clusterRef.name", fmt.Sprintf("there is no OmniCluster %s, so this is rendered into nothing: delete it", r.cluster))
	}
}

// carry takes the renderings of the cluster out of the list, and adds them to its spec.
func (c *Converted) carry(from *[]*rendering) {
	cluster, fits := c.Object.(*v1alpha1.OmniCluster)
	network, added := "", false

	*from = slices.DeleteFunc(*from, func(r *rendering) bool {
		if r.of.Namespace != c.Namespace || r.cluster != c.Name {
			return false
		}

		r.of.Refusals = nil

		switch {
		case r.patch != nil && network != "":
			r.of.refuse("spec.clusterRef.name", fmt.Sprintf("OmniCilium %s is of the same cluster: the old operator takes neither", network))
		case fits:
			cluster.Spec.Kubernetes.Manifests = append(cluster.Spec.Kubernetes.Manifests, r.manifest)
			if r.patch != nil {
				network, cluster.Spec.Patches = r.of.Name, append(cluster.Spec.Patches, *r.patch)
			}

			added = true
		}

		r.of.rendered = r.manifest.ValueFrom.SecretKeyRef.Name
		r.of.change("kind", fmt.Sprintf("manifest %s of OmniCluster %s reads Secret %s in its place, which is yours then: keep a copy of it, because nobody renders the chart again",
			r.manifest.Name, r.cluster, r.of.rendered))

		return true
	})

	if of, known := kindNamed(c.Kind); known && added {
		c.change("spec.kubernetes.manifests", "has what OmniClusterAddons and OmniCilium have rendered: put it into Git, too, before anything is applied from there again. "+
			"Without it, Omni removes that from the workload cluster")

		c.Warnings = nil
		if c.check(of, cluster); len(c.Refusals) > 0 {
			c.Object = nil
		}
	}
}

// readPatch reads the patch that goes with Cilium; an object whose values have none for sure is refused.
func (r *rendering) readPatch(old *unstructured.Unstructured) bool {
	if r.of.Kind != ciliumKind {
		return true
	}

	replaces, known := replacesProxy(old)
	if !known {
		r.of.Refusals = nil
		r.of.refuse("spec.values.kubeProxyReplacement", "says neither that Cilium replaces kube-proxy nor that it does not: the old operator does not render it")

		return false
	}

	text := `{"cluster":{"network":{"cni":{"name":"none"}}}}`
	if replaces {
		text = `{"cluster":{"network":{"cni":{"name":"none"}},"proxy":{"disabled":true}}}`
	}

	inline := &v1alpha1.FreeForm{}
	if err := inline.UnmarshalJSON([]byte(text)); err != nil {
		r.of.refuse("kind", err.Error())

		return false
	}

	r.patch = &v1alpha1.Patch{Name: "disable-default-cni-for-cilium", Inline: inline}

	return true
}

// replacesProxy reports whether the values of Cilium replace kube-proxy, as the old operator reads them. known is false if it
// does not take them.
func replacesProxy(cilium *unstructured.Unstructured) (replaces, known bool) {
	values, found, err := unstructured.NestedFieldNoCopy(cilium.Object, "spec", "values")
	if err != nil || !found || values == nil {
		return false, err == nil
	}

	fields, known := values.(map[string]any)

	switch value := fields["kubeProxyReplacement"].(type) {
	case bool:
		return value, known
	case string:
		switch strings.ToLower(strings.TrimSpace(value)) {
		case "true", "enabled", "strict":
			return true, true
		case "false", "disabled", "probe", "partial":
			return false, true
		}

		return false, false
	default:
		_, set := fields["kubeProxyReplacement"]

		return false, known && !set
	}
}

// refuseUnrendered refuses what is rendered if the Secret does not belong to an object of the group, and did not when the
// backup was made: nobody can tell then what it holds.
func (c *Converted) refuseUnrendered(s *state, b *backup) {
	if c.rendered == "" || len(c.Refusals) > 0 {
		return
	}

	for i := range s.Owned {
		if s.Owned[i].Namespace == c.Namespace && s.Owned[i].Name == c.rendered {
			return
		}
	}

	if b != nil && slices.ContainsFunc(b.Owned, func(one ownedSecret) bool { return one.Namespace == c.Namespace && one.Name == c.rendered }) {
		return
	}

	c.refuse("kind", fmt.Sprintf("Secret %s is not there, or does not belong to it: let the old operator render it. "+
		"If an earlier run has taken its owner off, give its backup file", c.rendered))
}
