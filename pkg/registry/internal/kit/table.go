package kit

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
)

// Column is one printed column.
type Column[T Object] struct {
	// Name is the heading.
	Name string
	// Type is the OpenAPI type of the cells: string, integer, boolean or date. Default: string.
	Type string
	// Description says what the cells mean.
	Description string
	// Wide columns are shown by `kubectl get -o wide` only.
	Wide bool
	// Cell reads the value. An empty string prints as nothing; see OrNone.
	Cell func(T) any
}

func (c Column[T]) definition() metav1.TableColumnDefinition {
	definition := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Description: c.Description}
	if definition.Type == "" {
		definition.Type = "string"
	}

	if c.Wide {
		definition.Priority = 1
	}

	return definition
}

type table[T Object] struct {
	columns     []Column[T]
	definitions []metav1.TableColumnDefinition
}

var _ rest.TableConvertor = table[Object]{}

func newTable[T Object](columns []Column[T]) table[T] {
	doc := metav1.ObjectMeta{}.SwaggerDoc()

	definitions := []metav1.TableColumnDefinition{{
		Name: "Name", Type: "string", Format: "name", Description: doc["name"],
	}}
	for _, column := range columns {
		definitions = append(definitions, column.definition())
	}

	definitions = append(definitions, metav1.TableColumnDefinition{
		Name: "Age", Type: "date", Description: doc["creationTimestamp"],
	})

	return table[T]{columns: columns, definitions: definitions}
}

// ConvertToTable prints an object or a list of them.
func (t table[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	printed := &metav1.Table{ListMeta: listMeta(obj)}
	if wanted, ok := options.(*metav1.TableOptions); !ok || wanted == nil || !wanted.NoHeaders {
		printed.ColumnDefinitions = t.definitions
	}

	rows, err := metatable.MetaToTableRow(obj, t.row)
	if err != nil {
		return nil, fmt.Errorf("print %T: %w", obj, err)
	}

	printed.Rows = rows

	return printed, nil
}

func (t table[T]) row(obj runtime.Object, _ metav1.Object, name, age string) ([]any, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("%T cannot be printed in this table", obj)
	}

	cells := []any{name}
	for _, column := range t.columns {
		cells = append(cells, column.Cell(object))
	}

	return append(cells, age), nil
}

func listMeta(obj runtime.Object) metav1.ListMeta {
	if list, err := meta.ListAccessor(obj); err == nil {
		return metav1.ListMeta{
			ResourceVersion:    list.GetResourceVersion(),
			Continue:           list.GetContinue(),
			RemainingItemCount: list.GetRemainingItemCount(),
		}
	}

	if one, err := meta.CommonAccessor(obj); err == nil {
		return metav1.ListMeta{ResourceVersion: one.GetResourceVersion()}
	}

	return metav1.ListMeta{}
}

// none is what kubectl prints for an empty value.
const none = "<none>"

// AllColumns are the columns of the kind among those that all kinds have. SUSPENDED stands before READY, as flux prints it: Ready of a
// suspended object is from before it was suspended.
func (d *Descriptor[T]) AllColumns() []Column[T] {
	var columns []Column[T]

	if d.Suspended != nil {
		columns = append(columns, Column[T]{
			Name:        "Suspended",
			Description: "Whether the object is told to do nothing: True or False.",
			Cell: func(obj T) any {
				if d.Suspended(obj) {
					return string(metav1.ConditionTrue)
				}

				return string(metav1.ConditionFalse)
			},
		})
	}

	columns = append(columns, readyColumn[T]("Ready", "Whether the object is fully done: True, False, or Unknown while nobody has looked yet.", false,
		string(metav1.ConditionUnknown), func(ready *metav1.Condition) string { return string(ready.Status) }),
		readyColumn[T]("Status", "Why the object is Ready or not, in one word.", false, none, func(ready *metav1.Condition) string { return ready.Reason }))
	columns = append(columns, d.Columns...)

	return append(columns, readyColumn[T]("Message", "Why the object is Ready or not, in a sentence.", true, none,
		func(ready *metav1.Condition) string { return ready.Message }))
}

// readyColumn shows a part of the condition Ready, and absent where there is none.
func readyColumn[T Object](name, description string, wide bool, absent string, part func(*metav1.Condition) string) Column[T] {
	return Column[T]{Name: name, Description: description, Wide: wide, Cell: func(obj T) any {
		if ready := meta.FindStatusCondition(obj.GetReconcileStatus().Conditions, v1alpha1.ConditionReady); ready != nil {
			return cmp.Or(part(ready), absent)
		}

		return absent
	}}
}

// ClusterColumn shows the OmniCluster that an object names.
func ClusterColumn[T Object]() Column[T] {
	return Column[T]{
		Name:        "Cluster",
		Description: "OmniCluster that this object belongs to.",
		Cell:        func(obj T) any { return v1alpha1.ClusterRefOf(obj) },
	}
}

// OrNone returns the value, or what kubectl prints for an empty one.
func OrNone(value string) string {
	if value == "" {
		return none
	}

	return value
}

// Until formats a time in the future as "in 3d", and one in the past as "3d ago".
func Until(moment *metav1.Time, now time.Time) string {
	if moment.IsZero() {
		return none
	}

	if left := moment.Sub(now); left > 0 {
		return "in " + duration.HumanDuration(left)
	}

	return duration.HumanDuration(now.Sub(moment.Time)) + " ago"
}

// Since formats how long ago a time was, as the column AGE does.
func Since(moment *metav1.Time, now time.Time) string {
	if moment.IsZero() {
		return none
	}

	return duration.HumanDuration(now.Sub(moment.Time))
}
