package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// packagesThatUse returns, for each constant of v1alpha1 with the prefix, the packages below pkg that name it outside of
// tests, and not only to compare with it: where to look for what sets a reason.
func packagesThatUse(root, prefix string) (map[string][]string, error) {
	found := map[string][]string{}

	err := filepath.WalkDir(filepath.Join(root, "pkg"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}

		folder, err := filepath.Rel(filepath.Join(root, "pkg"), filepath.Dir(path))
		if err != nil {
			return err
		}

		for _, name := range constantsIn(file, prefix) {
			if !slices.Contains(found[name], folder) {
				found[name] = append(found[name], folder)
			}
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for %s…: %w", prefix, err)
	}

	return found, nil
}

// constantsIn are the names with the prefix that a file takes from v1alpha1. One that something is compared with, or that
// a switch has a case for, is read there, not set.
func constantsIn(file *ast.File, prefix string) []string {
	var names []string

	read := map[ast.Node]bool{}

	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BinaryExpr:
			read[node.X], read[node.Y] = isComparison(node.Op), isComparison(node.Op)
		case *ast.CaseClause:
			for _, value := range node.List {
				read[value] = true
			}
		case *ast.SelectorExpr:
			from, ok := node.X.(*ast.Ident)
			if ok && from.Name == "v1alpha1" && strings.HasPrefix(node.Sel.Name, prefix) && !read[node] {
				names = append(names, node.Sel.Name)
			}
		}

		return true
	})

	return names
}

func isComparison(op token.Token) bool { return op == token.EQL || op == token.NEQ }
