package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// watch is what is looked for: functions of packages, by the path of the package and their names.
type watch struct{ packages, functions *regexp.Regexp }

func newWatch(packages, functions string) watch {
	return watch{regexp.MustCompile(`^(` + packages + `)$`), regexp.MustCompile(`^(` + functions + `)`)}
}

// decoders are the functions that turn text into values, or a stream into memory. Their methods need no look: nobody
// has a decoder who did not make one.
func decoders() []watch {
	return []watch{
		newWatch(`gopkg\.in/yaml\.v[0-9]+|go\.yaml\.in/yaml/v[0-9]+|encoding/(json|xml|gob)`, `Unmarshal|NewDecoder`),
		newWatch(`sigs\.k8s\.io/yaml(/.*)?|sigs\.k8s\.io/json`, `Unmarshal|NewDecoder|YAMLToJSON`),
		newWatch(`k8s\.io/apimachinery/pkg/util/(yaml|json)`, `New|ToJSON|Unmarshal`),
		newWatch(`sigs\.k8s\.io/kustomize/kyaml/.*`, `Unmarshal|NewDecoder|Parse|FromBytes`),
		newWatch(`compress/.*|github\.com/klauspost/compress.*`, `NewReader`),
		newWatch(`archive/.*`, `NewReader|OpenReader`),
		newWatch(`io|io/ioutil`, `ReadAll$`),
		newWatch(`k8s\.io/client-go/tools/clientcmd(/api/.*)?`, `Load|NewClientConfigFromBytes|RESTConfigFromKubeConfig`),
		newWatch(`helm\.sh/helm/v[0-9]+/.*`, `Load|Read|Parse`),
	}
}

// findPlaces looks through the product's code below the folders: no tests, nothing generated, and not pkg/foreign.
func findPlaces(root string, folders ...string) ([]place, error) {
	var found []place

	for _, folder := range folders {
		if err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}

			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}

			name = filepath.ToSlash(name)

			switch {
			case entry.IsDir() && (name == "pkg/foreign" || name == "pkg/generated" || entry.Name() == "testdata"):
				return filepath.SkipDir
			case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasPrefix(entry.Name(), "zz_generated."):
				return nil
			}

			inFile, err := placesIn(path, name)
			found = append(found, inFile...)

			return err
		}); err != nil {
			return nil, err
		}
	}

	return sorted(found), nil
}

// placesIn looks through one file.
func placesIn(path, name string) ([]place, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}

	watched := watchedImports(file)
	if len(watched) == 0 {
		return nil, nil
	}

	var found []place

	for _, declaration := range file.Decls {
		function := nameOf(declaration)

		ast.Inspect(declaration, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}

			if in, ok := selector.X.(*ast.Ident); ok && watched[in.Name] != nil && watched[in.Name].MatchString(selector.Sel.Name) {
				found = append(found, place{name, function, in.Name + "." + selector.Sel.Name})
			}

			return true
		})
	}

	return found, nil
}

// watchedImports are the names by which a file calls packages with decoders, and which of their functions are meant.
func watchedImports(file *ast.File) map[string]*regexp.Regexp {
	watched, all := map[string]*regexp.Regexp{}, decoders()

	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has accepted it
		}

		for _, decoder := range all {
			if decoder.packages.MatchString(path) {
				watched[localName(spec, path)] = decoder.functions
			}
		}
	}

	return watched
}

var version = regexp.MustCompile(`^v[0-9]+$|\.v[0-9]+$`)

// localName is what an import is called in its file: without a name of its own, the last part of its path that is
// no version.
func localName(spec *ast.ImportSpec, path string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}

	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]

	if version.MatchString(last) && !strings.Contains(last, ".") && len(parts) > 1 {
		last = parts[len(parts)-2]
	}

	return version.ReplaceAllString(last, "")
}

// nameOf is a function's name, `Type.Method` for a method, and `package` for what is outside of functions.
func nameOf(declaration ast.Decl) string {
	function, ok := declaration.(*ast.FuncDecl)
	if !ok {
		return "package"
	}

	if function.Recv == nil || len(function.Recv.List) == 0 {
		return function.Name.Name
	}

	receiver := function.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}

	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}

	if of, ok := receiver.(*ast.Ident); ok {
		return of.Name + "." + function.Name.Name
	}

	return function.Name.Name
}
