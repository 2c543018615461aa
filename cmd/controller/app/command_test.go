package app

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Every flag of every command stands on the page of flags, in the section of its command.
func TestFlagsAreOnTheirPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/controller-flags.md")
	if err != nil {
		t.Fatal(err)
	}

	sections := strings.Split(string(page), "\n## ")

	var look func(command *cobra.Command, section string)

	look = func(command *cobra.Command, section string) {
		for _, one := range sections[1:] {
			if title, _, _ := strings.Cut(one, "\n"); title == command.CommandPath() {
				section = one
			}
		}

		command.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Name != "help" && !strings.Contains(section, "`--"+flag.Name+"`") {
				t.Errorf("%s: --%s is not on the page", command.CommandPath(), flag.Name)
			}
		})

		for _, child := range command.Commands() {
			if !child.Hidden {
				look(child, section)
			}
		}
	}

	look(NewCommand(t.Context()), sections[0])
}

// `helm test` runs check with flags that it knows.
func TestCheckKnowsTheFlagsOfTheChart(t *testing.T) {
	pod, err := os.ReadFile("../../../artifacts/chart/omni-cluster-operator/templates/tests/check.yaml")
	if err != nil {
		t.Fatal(err)
	}

	check := newCheckCommand(t.Context())

	names := regexp.MustCompile(`--([a-z][a-z-]+)=?`).FindAllStringSubmatch(string(pod), -1)
	if len(names) < 5 {
		t.Fatalf("flags %v", names)
	}

	for _, name := range names {
		if check.Flags().Lookup(name[1]) == nil {
			t.Errorf("check has no flag --%s", name[1])
		}
	}
}
