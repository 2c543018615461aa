package migrate

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// The commands of the pages that take finalizers and owners off take only this operator's: those of other controllers stay,
// in their order, wherever they stand in the list. So do those of the migration with the older group in place of ours.
func TestPagesTakeOffOnlyOurs(t *testing.T) {
	const (
		objects = `{"items":[
 {"kind":"OmniCluster","metadata":{"namespace":"a","name":"both","finalizers":["x.io/1","omni.texashpc.com/finalizer","x.io/2"]}},
 {"kind":"OmniWorkers","metadata":{"namespace":"a","name":"ours","finalizers":["omni.texashpc.com/finalizer"]}},
 {"kind":"OmniWorkers","metadata":{"namespace":"a","name":"none"}},
 {"kind":"OmniWorkers","metadata":{"namespace":"b","name":"theirs","finalizers":["x.io/1"]}}]}`
		secrets = `{"items":[
 {"kind":"RoleBinding","metadata":{"namespace":"a","name":"binding","finalizers":["x.io/1","omni.texashpc.com/in-use"]}},
 {"kind":"Lease","metadata":{"namespace":"a","name":"lease","finalizers":["omni.texashpc.com/in-use"]}},
 {"kind":"Secret","metadata":{"namespace":"a","name":"owned","ownerReferences":[{"apiVersion":"v1","uid":"1"},{"apiVersion":"omni.texashpc.com/v1alpha1","uid":"2"},{"apiVersion":"apps/v1","uid":"3"},{"apiVersion":"omni.texashpc.com/v1alpha1","uid":"4"}]}},
 {"kind":"Secret","metadata":{"namespace":"a","name":"used","finalizers":["omni.texashpc.com/in-use","x.io/1","omni.texashpc.com/kubeconfig-in-use","x.io/2"]}},
 {"kind":"Secret","metadata":{"namespace":"b","name":"theirs","ownerReferences":[{"apiVersion":"v1","uid":"1"}],"finalizers":["x.io/1"]}}]}`
	)

	migrated := map[string]string{
		"both":  `{"finalizers":["x.io/1","x.io/2"]}`,
		"ours":  `{"finalizers":[]}`,
		"owned": `{"ownerReferences":[{"apiVersion":"v1","uid":"1"},{"apiVersion":"apps/v1","uid":"3"}]}`,
	}

	for _, test := range []struct {
		page, with, group string
		want              map[string]string // the metadata of what is patched
	}{
		{"migrate.md", "finalizers", "omni.texashpc.com", migrated},
		{"migrate.md", "finalizers", olderGroup, migrated},
		{"install.md", "omni.texashpc.com/in-use", "omni.texashpc.com", map[string]string{
			"used":    `{"finalizers":["x.io/1","x.io/2"]}`,
			"binding": `{"finalizers":["x.io/1"]}`,
			"lease":   `{"finalizers":[]}`,
		}},
	} {
		script := blockOf(t, filepath.Join("../../docs/how-to", test.page), test.with)
		inGroup := strings.NewReplacer("omni.texashpc.com", test.group)
		p := pageShell{t: t, dir: t.TempDir(), group: test.group, lists: map[string]string{"secrets": inGroup.Replace(secrets), "objects": inGroup.Replace(objects)}}

		got := p.run(script)
		if len(got) != len(test.want) {
			t.Errorf("%s patches %v", test.page, got)
		}

		for name, want := range test.want {
			var wanted map[string]any
			if err := json.Unmarshal([]byte(want), &wanted); err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(wanted, got[name]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", test.page, name, diff)
			}
		}
	}
}

// blockOf returns the one block of commands of a page that patches and has this text.
func blockOf(t *testing.T, path, with string) string {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	var found []string

	for i, part := range strings.Split(string(text), "```") {
		if script, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 && strings.Contains(script, with) && strings.Contains(script, " patch ") {
			found = append(found, script)
		}
	}

	if len(found) != 1 {
		t.Fatalf("%s has %d blocks with %q", path, len(found), with)
	}

	return found[0]
}

// pageShell runs the commands of a page with a kubectl that prints what it is told to, and writes its patches down.
type pageShell struct {
	t     *testing.T
	dir   string
	group string            // of the objects
	lists map[string]string // answers to get, by resource
}

// kubectl prints a prepared answer to get, and notes the name, the type and the body of a patch.
const kubectl = `#!/bin/sh
case "$1" in
get) case "$2" in secrets*) cat "$DIR/secrets";; *) cat "$DIR/objects";; esac; exit;;
esac
name= type=
while [ $# -gt 0 ]; do
  case "$1" in
  -n|--namespace) shift;;
  patch) shift; case "$1" in secret|Secret|Lease|RoleBinding|*.v1alpha1.omni.*) name=$2; shift;; esac;;
  --type=*) type=${1#--type=};;
  --type) type=$2; shift;;
  -p|--patch) printf '%s\t%s\t%s\n' "$name" "$type" "$2" >> "$DIR/patches"; shift;;
  esac
  shift
done
`

// run returns the metadata, without namespace and name, of the objects that the commands patch.
func (p pageShell) run(script string) map[string]map[string]any {
	p.t.Helper()

	for _, of := range regexp.MustCompile(`(?s)kubectl get (\S+).*?-o go-template='(.*?)'`).FindAllStringSubmatch(strings.ReplaceAll(script, `'"$group"'`, p.group), -1) {
		name := "objects"
		if strings.HasPrefix(of[1], "secrets") {
			name = "secrets"
		}

		p.write(name, p.rendered(of[2], p.lists[name]), 0o600)
	}

	p.write("kubectl", kubectl, 0o700)

	shell := exec.CommandContext(p.t.Context(), "sh", "-e", "-u", "-c", script)
	shell.Env = []string{"PATH=" + p.dir + string(os.PathListSeparator) + os.Getenv("PATH"), "DIR=" + p.dir, "kinds=omniclusters,omniworkers", "group=" + p.group}

	if out, err := shell.CombinedOutput(); err != nil {
		p.t.Fatalf("%s\n%v: %s", script, err, out)
	}

	return p.patched()
}

func (p pageShell) write(name, text string, mode os.FileMode) {
	p.t.Helper()

	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p pageShell) rendered(text, list string) string {
	p.t.Helper()

	var (
		fields any
		out    bytes.Buffer
	)

	if err := json.Unmarshal([]byte(list), &fields); err != nil {
		p.t.Fatal(err)
	}

	if err := template.Must(template.New("page").Parse(text)).Execute(&out, fields); err != nil {
		p.t.Fatal(err)
	}

	return out.String()
}

// patched applies the patches, in their order.
func (p pageShell) patched() map[string]map[string]any {
	p.t.Helper()

	before, after := map[string]map[string]any{}, map[string]map[string]any{}

	for _, list := range p.lists {
		var all struct {
			Items []struct{ Metadata map[string]any }
		}
		if err := json.Unmarshal([]byte(list), &all); err != nil {
			p.t.Fatal(err)
		}

		for _, item := range all.Items {
			name, _ := item.Metadata["name"].(string)
			delete(item.Metadata, "name")
			delete(item.Metadata, "namespace")

			before[name] = item.Metadata
		}
	}

	text, err := os.ReadFile(filepath.Join(p.dir, "patches"))
	if err != nil {
		p.t.Fatal(err)
	}

	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		after[fields[0]] = before[fields[0]]

		if fields[1] == "json" {
			p.patchJSON(before[fields[0]], fields[2])
		} else {
			p.patchMerge(before[fields[0]], fields[2])
		}
	}

	return after
}

// patchMerge applies a merge patch of whole fields of the metadata.
func (p pageShell) patchMerge(metadata map[string]any, body string) {
	p.t.Helper()

	var patch struct{ Metadata map[string]any }
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		p.t.Fatalf("%s: %v", body, err)
	}

	for field, value := range patch.Metadata {
		if metadata[field] = value; value == nil {
			delete(metadata, field)
		}
	}
}

// patchJSON applies a JSON patch that tests and removes members of a list.
func (p pageShell) patchJSON(metadata map[string]any, body string) {
	p.t.Helper()

	var patch []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal([]byte(body), &patch); err != nil {
		p.t.Fatalf("%s: %v", body, err)
	}

	for _, one := range patch {
		path := strings.Split(strings.TrimPrefix(one.Path, "/metadata/"), "/")

		list, _ := metadata[path[0]].([]any)

		at, err := strconv.Atoi(path[1])
		if err != nil || at >= len(list) {
			p.t.Fatalf("%s: there are %v", body, list)
		}

		member := list[at]
		if fields, ok := member.(map[string]any); ok && len(path) == 3 {
			member = fields[path[2]]
		}

		switch {
		case one.Op == "remove" && len(path) == 2:
			metadata[path[0]] = slices.Delete(slices.Clone(list), at, at+1)
		case one.Op != "test" || member != one.Value:
			p.t.Fatalf("%s: there is %v", body, member)
		}
	}
}
