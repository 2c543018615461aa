package kit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
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
