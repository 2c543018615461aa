package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

const (
	// conditionsFile has the constants of condition types and reasons, from the root of the repository.
	conditionsFile = "pkg/apis/omni/v1alpha1/conditions.go"
	// reasonPrefix is how the names of the constants of reasons begin.
	reasonPrefix = "Reason"
)

// conditionGroup is a group of constants with a comment.
type conditionGroup struct{ decl *ast.GenDecl }

// constant is one of a group.
type constant struct{ name, value, meaning string }

// conditionGroups reads the groups of the file.
func conditionGroups(path string) ([]conditionGroup, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read conditions: %w", err)
	}

	var groups []conditionGroup

	for _, decl := range file.Decls {
		if group, ok := decl.(*ast.GenDecl); ok && group.Tok == token.CONST {
			groups = append(groups, conditionGroup{group})
		}
	}

	return groups, nil
}

// title is the group's comment.
func (g conditionGroup) title() string {
	return strings.TrimSuffix(strings.TrimSpace(g.decl.Doc.Text()), ".")
}

// constants are those of the group that are texts.
func (g conditionGroup) constants() []constant {
	var found []constant

	for _, spec := range g.decl.Specs {
		value, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}

		literal, ok := value.Values[0].(*ast.BasicLit)
		if !ok {
			continue
		}

		text, err := strconv.Unquote(literal.Value)
		if err != nil {
			continue
		}

		name := value.Names[0].Name
		meaning := strings.ReplaceAll(strings.TrimSpace(value.Doc.Text()), "\n", " ")
		found = append(found, constant{name, text, strings.TrimPrefix(meaning, name+": ")})
	}

	return found
}

// reasons reports whether the group is one of reasons and not of condition types.
func (g conditionGroup) reasons() bool {
	return strings.HasPrefix(g.decl.Specs[0].(*ast.ValueSpec).Names[0].Name, reasonPrefix)
}

// conditionsPage turns the groups into tables: the group's comment is the heading, a constant's value and comment are a
// row; a reason's row names the packages that set it.
func conditionsPage(path string, packages map[string][]string) (string, error) {
	groups, err := conditionGroups(path)
	if err != nil {
		return "", err
	}

	var page strings.Builder

	page.WriteString("# Conditions and reasons\n\n")
	page.WriteString("`Ready` always exists. `Reconciling` and `Stalled` exist only while they are true, as kstatus expects.\n")
	page.WriteString("A stalled object is tried again at its interval, because the remedy may happen inside Omni.\n")
	page.WriteString("The last column of the reasons is for those who look for the line in the code: packages below pkg.\n")

	for _, group := range groups {
		fmt.Fprintf(&page, "\n## %s\n\n", group.title())

		if group.reasons() {
			page.WriteString("| Name | Meaning | Package |\n|---|---|---|\n")
		} else {
			page.WriteString("| Name | Meaning |\n|---|---|\n")
		}

		for _, c := range group.constants() {
			fmt.Fprintf(&page, "| `%s` | %s |", c.value, c.meaning)

			if group.reasons() {
				fmt.Fprintf(&page, " %s |", strings.Join(packages[c.name], ", "))
			}

			page.WriteString("\n")
		}
	}

	return page.String(), nil
}
