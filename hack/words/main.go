// Command words finds names that use a word which docs/development/architecture.md does not have in its glossary on
// purpose: a private word for a thing that has a standard one. It looks at the names of files and at what Go code
// declares, not at comments, where the same word may be plain English. `make verify` runs it.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// list has a line for each word that is not used in names: the word, and what to say instead.
const list = "hack/words/banned.txt"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: words <repository root>")
		os.Exit(2)
	}

	problems, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}

	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}

	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns a line for each name below a repository's root that has a banned word in it.
func check(root string) ([]string, error) {
	banned, err := readList(filepath.Join(root, list))
	if err != nil {
		return nil, err
	}

	var problems []string

	complain := func(where, name string) {
		for _, word := range split(name) {
			if instead, found := banned[word]; found {
				problems = append(problems, fmt.Sprintf("%s: %s: %q is not a word of this project, use %s", where, name, word, instead))
			}
		}
	}

	for _, dir := range []string{"artifacts", "cmd", "docs", "hack", "pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}

			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}

			if entry.IsDir() && (entry.Name() == "generated" || entry.Name() == "testdata") {
				return filepath.SkipDir
			}

			complain(relative, strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())))

			if filepath.Ext(path) != ".go" || strings.HasPrefix(entry.Name(), "zz_generated") {
				return nil
			}

			return declared(path, func(line int, name string) { complain(fmt.Sprintf("%s:%d", relative, line), name) })
		})
		if err != nil {
			return nil, err
		}
	}

	return problems, nil
}

// readList reads the banned words, and what to say instead of each.
func readList(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	banned := map[string]string{}

	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}

		word, instead, found := strings.Cut(line, " ")
		if !found {
			return nil, fmt.Errorf("%s: %q says nothing to use instead", path, word)
		}

		banned[word] = strings.TrimSpace(instead)
	}

	return banned, lines.Err()
}

// declared calls each with what a file declares: functions, types, fields, constants, variables and parameters. The name
// of a test is a sentence and does not count.
func declared(path string, each func(line int, name string)) error {
	files := token.NewFileSet()

	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}

	tell := func(names ...*ast.Ident) {
		for _, name := range names {
			each(files.Position(name.Pos()).Line, name.Name)
		}
	}

	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if !isTest(node.Name.Name) {
				tell(node.Name)
			}
		case *ast.TypeSpec:
			tell(node.Name)
		case *ast.ValueSpec:
			tell(node.Names...)
		case *ast.Field:
			tell(node.Names...)
		case *ast.AssignStmt:
			if node.Tok == token.DEFINE {
				tell(names(node.Lhs)...)
			}
		case *ast.RangeStmt:
			if node.Tok == token.DEFINE {
				tell(names([]ast.Expr{node.Key, node.Value})...)
			}
		}

		return true
	})

	return nil
}

func names(expressions []ast.Expr) []*ast.Ident {
	var found []*ast.Ident

	for _, expression := range expressions {
		if name, ok := expression.(*ast.Ident); ok {
			found = append(found, name)
		}
	}

	return found
}

func isTest(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// split returns the words of a name in camel case or with dashes or underscores, in small letters.
func split(name string) []string {
	runes := []rune(name)
	start := 0

	var words []string

	for i := 1; i <= len(runes); i++ {
		if i < len(runes) && !ends(runes, i) {
			continue
		}

		words = append(words, strings.ToLower(strings.Trim(string(runes[start:i]), "_-. ")))
		start = i
	}

	return words
}

// ends reports whether a new word begins at i: at a capital letter behind a small one, at the last of several capitals
// before a small letter, and behind what is neither letter nor digit.
func ends(runes []rune, i int) bool {
	switch {
	case !unicode.IsLetter(runes[i-1]) && !unicode.IsDigit(runes[i-1]):
		return true
	case !unicode.IsUpper(runes[i]):
		return false
	default:
		return !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])
	}
}
