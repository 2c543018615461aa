// Command links checks the pages: every link to a file or a heading of this repository leads to one, and docs/README.md
// lists every page below docs, or its folder. `make verify` runs it.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// index lists all pages.
const index = "docs/README.md"

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```[ \t]*$")
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#{1,6} +(.+?)\s*$`)
	inner  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: links <repository root>")
		os.Exit(2)
	}

	problems, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(2)
	}

	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}

	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns a line for each link that leads nowhere and each page that the index does not list.
func check(root string) ([]string, error) {
	pages, err := read(root)
	if err != nil {
		return nil, err
	}

	var problems []string

	listed := map[string]bool{index: true}

	for name, text := range pages {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, ":") {
				continue // of the web
			}

			path := name
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(name), filepath.FromSlash(target)))
			}

			if name == index {
				listed[path] = true
			}

			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				problems = append(problems, fmt.Sprintf("%s: there is no %s", name, found[1]))
			} else if to, isPage := pages[path]; isPage && anchor != "" && !slices.Contains(headings(to), anchor) {
				problems = append(problems, fmt.Sprintf("%s: %s has no heading #%s", name, path, anchor))
			}
		}
	}

	for name := range pages {
		if strings.HasPrefix(name, "docs/") && !listed[name] && !listed[filepath.ToSlash(filepath.Dir(name))] {
			problems = append(problems, fmt.Sprintf("%s does not list %s", index, name))
		}
	}

	slices.Sort(problems)

	return problems, nil
}

// read returns the text of every page of the repository without its blocks of code, by its path.
func read(root string) (map[string]string, error) {
	pages := map[string]string{}

	return pages, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}

		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}

		if entry.IsDir() {
			// The examples are parts of pages below docs/reference, and are checked there.
			if strings.HasPrefix(entry.Name(), ".") && name != "." || entry.Name() == "testdata" || filepath.ToSlash(name) == "hack/docgen/examples" {
				return filepath.SkipDir
			}

			return nil
		}

		if filepath.Ext(name) != ".md" {
			return nil
		}

		text, err := os.ReadFile(path)
		if err == nil {
			pages[filepath.ToSlash(name)] = fenced.ReplaceAllString(string(text), "")
		}

		return err
	})
}

// headings are the anchors of a page, as GitHub makes them.
func headings(text string) []string {
	var anchors []string

	for _, found := range title.FindAllStringSubmatch(text, -1) {
		anchor := slug(inner.ReplaceAllString(found[1], "$1"))

		again := anchor
		for n := 1; slices.Contains(anchors, again); n++ {
			again = fmt.Sprintf("%s-%d", anchor, n)
		}

		anchors = append(anchors, again)
	}

	return anchors
}

// slug is a heading in small letters, with hyphens for spaces and without punctuation.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
