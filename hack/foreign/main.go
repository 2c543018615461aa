// Command foreign finds places that decode text with a library directly. Text that is not ours goes through
// pkg/foreign, which bounds what it becomes in memory; hack/foreign/allowed.txt names the places that may do without,
// each with the reason. `make verify` runs it.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// allowList is where the places are that may decode directly, below the root of the repository.
const allowList = "hack/foreign/allowed.txt"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: foreign <repository root>")
		os.Exit(2)
	}

	problems, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "foreign:", err)
		os.Exit(2)
	}

	for _, problem := range problems {
		fmt.Fprintln(os.Stderr, problem)
	}

	if len(problems) > 0 {
		os.Exit(1)
	}
}

// place is where a decoder is used: file, function and the decoder as `package.Name`.
type place struct{ file, function, decoder string }

func (p place) String() string { return p.file + " " + p.function + " " + p.decoder }

// check compares the places in the product's code with those that are allowed.
func check(root string) ([]string, error) {
	allowed, err := readAllowed(filepath.Join(root, allowList))
	if err != nil {
		return nil, err
	}

	found, err := findPlaces(root, "cmd", "pkg")
	if err != nil {
		return nil, err
	}

	var problems []string

	for _, at := range found {
		if !slices.Contains(allowed, at) {
			problems = append(problems, fmt.Sprintf("%s: read foreign text with pkg/foreign; if it is ours, or bounded in another way, say so in %s", at, allowList))
		}
	}

	for _, at := range allowed {
		if !slices.Contains(found, at) {
			problems = append(problems, fmt.Sprintf("%s: there is no such place any more: take the line out of %s", at, allowList))
		}
	}

	return problems, nil
}

// readAllowed reads lines of `file function decoder # reason`.
func readAllowed(path string) ([]place, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	var allowed []place

	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		entry, reason, _ := strings.Cut(lines.Text(), "#")

		fields := strings.Fields(entry)
		if len(fields) == 0 {
			continue
		}

		if len(fields) != 3 || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: a line is `file function decoder # reason`", allowList, number)
		}

		allowed = append(allowed, place{fields[0], fields[1], fields[2]})
	}

	return allowed, lines.Err()
}

// sorted brings places into the order of the list, each once.
func sorted(places []place) []place {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.String(), b.String()) })

	return slices.Compact(places)
}
