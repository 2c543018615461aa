package migrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// workersNamed are old objects.
func workersNamed(t *testing.T, names ...string) []*unstructured.Unstructured {
	t.Helper()

	var all []*unstructured.Unstructured

	for _, name := range names {
		one := stored(t, "OmniWorkers", "", `{clusterRef: {name: c}, machineClass: {name: m, size: 1}}`)
		one.SetName(name)
		all = append(all, one)
	}

	return all
}

// What was made, or found, is on the disk before the next object is made: a run that is killed at any create forgets nothing,
// and what a user deletes after that stays deleted.
func TestAKilledImportForgetsNothing(t *testing.T) {
	const killed = "killed"

	found := workersNamed(t, "b")[0]
	names := []string{"a", "b", "c", "d", "e"}

	for k := range names {
		for how, die := range map[string]func(context.CancelFunc){
			"killed":  func(context.CancelFunc) { panic(killed) },
			"stopped": func(cancel context.CancelFunc) { cancel() },
		} {
			t.Run(fmt.Sprintf("%s at create %d", how, k+1), func(t *testing.T) {
				objects := fakeHub(found.DeepCopy())
				m := migrationOn(objects, workersNamed(t, names...)...)
				m.options.Backup = filepath.Join(t.TempDir(), "backup.json")

				if err := m.backup.write(t.Context(), m.options.Backup); err != nil {
					t.Fatal(err)
				}

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()

				creates := 0

				objects.PrependReactor("create", "*", func(ktesting.Action) (bool, runtime.Object, error) {
					if creates++; creates != k+1 {
						return false, nil, nil
					}

					die(cancel)

					return true, nil, ctx.Err()
				})

				func() {
					defer func() {
						if died := recover(); died != nil && died != killed {
							panic(died)
						}
					}()

					if err := m.importAll(ctx); err == nil {
						t.Error("a run that was stopped succeeded")
					}
				}()

				if creates != k+1 {
					t.Errorf("%d objects were asked for after the end", creates-k-1)
				}

				next := migrationOn(objects)
				next.options.Backup = m.options.Backup

				if err := next.load(t.Context(), &state{}); err != nil {
					t.Fatal(err)
				}

				var want []string
				for _, name := range names[:k] {
					want = append(want, "OmniWorkers team-a/"+name)
				}

				if !slices.Equal(next.backup.Imported, want) {
					t.Fatalf("imported %q, want %q", next.backup.Imported, want)
				}

				importsTheRest(t, next, names, k)
			})
		}
	}
}

// importsTheRest runs the import once more, after a user has deleted what the first one had made last.
func importsTheRest(t *testing.T, m *Migration, names []string, made int) {
	t.Helper()

	of, _ := kindNamed("OmniWorkers")
	workers := m.hub.objects.Resource(of.resource()).Namespace("team-a")
	want := slices.Clone(names)

	if made > 0 {
		want = slices.Delete(want, made-1, made)

		if err := workers.Delete(t.Context(), names[made-1], metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	if err := m.importAll(t.Context()); err != nil {
		t.Fatal(err)
	}

	list, err := workers.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	var got []string
	for i := range list.Items {
		got = append(got, list.Items[i].GetName())
	}

	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}

	saved, err := readBackup(t.Context(), m.options.Backup)
	if err != nil || len(saved.Imported) != len(names) {
		t.Errorf("the backup says %v, %v", saved.Imported, err)
	}

	left, err := os.ReadDir(filepath.Dir(m.options.Backup))
	if err != nil || len(left) != 1 {
		t.Errorf("files that are left: %v, %v", left, err)
	}
}

// A journal counts only with the backup that it continues, and up to its last complete line.
func TestWhoseJournal(t *testing.T) {
	for name, test := range map[string]struct {
		change func(text string) string
		want   []string
	}{
		"its own":              {func(text string) string { return text }, []string{"one", "two"}},
		"cut in a line":        {func(text string) string { return strings.TrimSuffix(text, "wo\n") }, []string{"one"}},
		"cut before a line":    {func(text string) string { return strings.TrimSuffix(text, "\n") }, []string{"one"}},
		"cut in the first one": {func(text string) string { return text[:20] }, nil},
		"empty":                {func(string) string { return "" }, nil},
		"of another backup":    {func(text string) string { return "x" + text }, nil},
	} {
		path := filepath.Join(t.TempDir(), "backup.json")
		b := &backup{Format: backupFormat, HubID: "hub"}

		if err := b.write(t.Context(), path); err != nil {
			t.Fatal(err)
		}

		j, err := newJournal(path)
		if err != nil {
			t.Fatal(err)
		}

		for _, id := range []string{"one", "two"} {
			if err := j.add(id); err != nil {
				t.Fatal(err)
			}
		}

		if err := j.close(); err != nil {
			t.Fatal(err)
		}

		text, err := os.ReadFile(journalOf(path))
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(journalOf(path), []byte(test.change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}

		read, err := readBackup(t.Context(), path)
		if err != nil || !slices.Equal(read.Imported, test.want) {
			t.Errorf("%s: %v, %v, want %v", name, read, err, test.want)
		}

		// Written anew, the backup has it all, and what is left of the journal adds nothing.
		if err := read.write(t.Context(), path); err != nil {
			t.Fatal(err)
		}

		if again, err := readBackup(t.Context(), path); err != nil || !slices.Equal(again.Imported, test.want) {
			t.Errorf("%s, written anew: %v, %v", name, again, err)
		}
	}
}
