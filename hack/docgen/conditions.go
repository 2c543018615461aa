package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// reasonPrefix is how the names of the constants of reasons begin.
const reasonPrefix = "Reason"

// conditionsPage turns the constant groups of conditions.go into tables: the group's comment is
// the heading, a constant's value and comment are a row; a reason's row names the packages that set it.
func conditionsPage(path string, packages map[string][]string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read conditions: %w", err)
	}

	var page strings.Builder

	page.WriteString("# Conditions and reasons\n\n")
	page.WriteString("`Ready` always exists. `Reconciling` and `Stalled` exist only while they are true, as kstatus expects.\n")
	page.WriteString("A stalled object is tried again at its interval, because the remedy may happen inside Omni.\n")
	page.WriteString("The last column of the reasons is for those who look for the line in the code: packages below pkg.\n")

	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}

		fmt.Fprintf(&page, "\n## %s\n\n", strings.TrimSuffix(strings.TrimSpace(group.Doc.Text()), "."))

		if strings.HasPrefix(group.Specs[0].(*ast.ValueSpec).Names[0].Name, reasonPrefix) {
			page.WriteString("| Name | Meaning | Package |\n|---|---|---|\n")
		} else {
			page.WriteString("| Name | Meaning |\n|---|---|\n")
		}

		for _, spec := range group.Specs {
			if row, ok := conditionRow(spec.(*ast.ValueSpec), packages); ok {
				page.WriteString(row)
			}
		}
	}

	return page.String(), nil
}

func conditionRow(spec *ast.ValueSpec, packages map[string][]string) (string, bool) {
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

	row := fmt.Sprintf("| `%s` | %s |", value, meaning)
	if strings.HasPrefix(spec.Names[0].Name, reasonPrefix) {
		row += " " + strings.Join(packages[spec.Names[0].Name], ", ") + " |"
	}

	return row + "\n", true
}
