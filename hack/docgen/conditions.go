package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// conditionsPage turns the constant groups of conditions.go into tables: the group's comment is
// the heading, a constant's value and comment are a row.
func conditionsPage(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read conditions: %w", err)
	}

	var page strings.Builder

	page.WriteString("# Conditions and reasons\n\n")
	page.WriteString("`Ready` always exists. `Reconciling` and `Stalled` exist only while they are true, as kstatus expects.\n")
	page.WriteString("A stalled object is tried again at its interval, because the remedy may happen inside Omni.\n")

	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}

		fmt.Fprintf(&page, "\n## %s\n\n| Name | Meaning |\n|---|---|\n", strings.TrimSuffix(strings.TrimSpace(group.Doc.Text()), "."))

		for _, spec := range group.Specs {
			if row, ok := conditionRow(spec.(*ast.ValueSpec)); ok {
				page.WriteString(row)
			}
		}
	}

	return page.String(), nil
}

func conditionRow(spec *ast.ValueSpec) (string, bool) {
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}

	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return "", false
	}

	meaning := strings.ReplaceAll(strings.TrimSpace(spec.Doc.Text()), "\n", " ")
	meaning = strings.TrimPrefix(meaning, spec.Names[0].Name+": ")

	return fmt.Sprintf("| `%s` | %s |\n", value, meaning), true
}
