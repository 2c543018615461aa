package migrate

import (
	"fmt"
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
