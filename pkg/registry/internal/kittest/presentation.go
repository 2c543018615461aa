package kittest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// leaves are the paths of a set, sorted, one per line.
func leaves(set *fieldpath.Set) string {
	var paths []string

	set.Iterate(func(path fieldpath.Path) { paths = append(paths, strings.TrimPrefix(path.String(), ".")) })
	slices.Sort(paths)

	return strings.Join(paths, "\n")
}

// testSelectors: the watch cache answers field selectors, and unknown ones are refused by name.
func (s *suite[T]) testSelectors(t *testing.T) {
	storage := s.cached(t)
	v := s.verbs(t, storage)
	v.create(s.valid("foo"))
	v.create(s.valid("bar"))

	tests := []struct {
		selector fields.Selector
		want     []string
	}{
		{fields.OneTermEqualSelector("metadata.name", "foo"), []string{"foo"}},
		{fields.OneTermEqualSelector("metadata.namespace", "default"), []string{"bar", "foo"}},
		{fields.OneTermEqualSelector("metadata.namespace", "other"), nil},
	}

	if field := s.Descriptor.Selectable; field != nil {
		value := field.Value(s.Valid())
		tests = append(tests, []struct {
			selector fields.Selector
			want     []string
		}{
			{fields.OneTermEqualSelector(field.Label, value), []string{"bar", "foo"}},
			{fields.OneTermEqualSelector(field.Label, value+"-not"), nil},
			{fields.OneTermNotEqualSelector(field.Label, value), nil},
		}...)
	}

	for _, test := range tests {
		list, err := storage.Main.List(s.request(t, ""), &metainternalversion.ListOptions{FieldSelector: test.selector})
		if err != nil {
			t.Fatalf("%s: %v", test.selector, err)
		}

		if diff := cmp.Diff(test.want, names(t, list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.selector, diff)
		}
	}

	s.testUnknownSelector(t)
}

func (s *suite[T]) testUnknownSelector(t *testing.T) {
	t.Helper()

	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}

	if err := s.Descriptor.AddFieldLabels(scheme); err != nil {
		t.Fatal(err)
	}

	kind := v1alpha1.SchemeGroupVersion.WithKind(s.Descriptor.Kind)

	_, _, err := scheme.ConvertFieldLabel(kind, "spec.nonsense", "x")
	if err == nil || !strings.Contains(err.Error(), `"spec.nonsense"`) || !strings.Contains(err.Error(), `"metadata.name"`) {
		t.Errorf("unknown selector: %v", err)
	}
}

func names(t *testing.T, list runtime.Object) []string {
	t.Helper()

	objects, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, obj := range objects {
		names = append(names, obj.(metav1.Object).GetName())
	}

	slices.Sort(names)

	return names
}

// testNames: what discovery says of the kind.
func (s *suite[T]) testNames(t *testing.T) {
	main := s.plain(t).Main

	got := []string{main.GetSingularName(), strings.Join(main.ShortNames(), ","), strings.Join(main.Categories(), ",")}
	want := []string{strings.ToLower(s.Descriptor.Kind), s.Descriptor.ShortName, "omni"}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}

	if !main.NamespaceScoped() {
		t.Error("not namespaced")
	}
}

// testTable: the printed cells, and headings for each of them.
func (s *suite[T]) testTable(t *testing.T) {
	storage := s.plain(t)

	for _, row := range s.Rows {
		t.Run(row.Name, func(t *testing.T) {
			obj := s.valid("foo")
			obj.SetResourceVersion("12")
			row.Change(obj)

			table, err := storage.Main.ConvertToTable(t.Context(), obj, &metav1.TableOptions{})
			if err != nil {
				t.Fatal(err)
			}

			if table.ResourceVersion != "12" || len(table.Rows) != 1 {
				t.Fatalf("table %+v", table)
			}

			cells := table.Rows[0].Cells
			if len(cells) != len(table.ColumnDefinitions) || cells[0] != "foo" {
				t.Fatalf("cells %v under %d headings", cells, len(table.ColumnDefinitions))
			}

			if diff := cmp.Diff(row.Cells, cells[1:len(cells)-1]); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
		})
	}
}
