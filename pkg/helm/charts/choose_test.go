package charts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"omni.texashpc.com/omni-cluster-operator/pkg/limiter"
	"omni.texashpc.com/omni-cluster-operator/test/foreigntest"
)

// chooseFrom chooses from versions as from those of an index.
func chooseFrom(ctx context.Context, versions []string, wanted string) (int, error) {
	return choose(ctx, onlyChoosing().newChoice(&Source{Chart: "demo", Version: wanted}), slices.All(versions))
}

// onlyChoosing is a Fetcher that can do nothing else.
func onlyChoosing() *Fetcher {
	return &Fetcher{choosing: limiter.New(limiter.Limits[string]{PerKey: 1})}
}

func TestChoose(t *testing.T) {
	versions := []string{"1.0.0", "v1.2.0", "1.10.0", "2.0.0-rc.1", "latest", "1.10.0+build1", "0.9"}

	for _, test := range []struct{ wanted, found string }{
		{"", "1.10.0"},
		{"1.0.0", "1.0.0"},
		{"v1.2.0", "v1.2.0"},
		{"1.2.0", "v1.2.0"},
		{"latest", "latest"},
		{"~1.0", "1.0.0"},
		{">=1.0.0 <1.5.0", "v1.2.0"},
		{"^1", "1.10.0"},
		{"2.0.0-rc.1", "2.0.0-rc.1"},
		{">=2.0.0-0", "2.0.0-rc.1"},
		{"1.10.0+build1", "1.10.0+build1"},
		{"3.x", ""},
		{"9.9.9", ""},
	} {
		t.Run(test.wanted, func(t *testing.T) {
			at, err := chooseFrom(t.Context(), versions, test.wanted)
			if err != nil {
				t.Fatal(err)
			}

			found := ""
			if at >= 0 {
				found = versions[at]
			}

			if found != test.found {
				t.Errorf("found %q, want %q", found, test.found)
			}
		})
	}
}

func TestChooseRefusesNonsense(t *testing.T) {
	if _, err := chooseFrom(t.Context(), []string{"1.0.0"}, "not a version"); err == nil {
		t.Error("no error")
	}
}

func TestIsExact(t *testing.T) {
	for text, want := range map[string]bool{"1.2.3": true, "v1.2.3": true, "1.2.3-rc.1+b": true, "1.2": false, "~1.2.3": false, "": false, "latest": false} {
		if got := isExact(text); got != want {
			t.Errorf("isExact(%q) = %v, want %v", text, got, want)
		}
	}
}

// The newest of all that satisfy a range is chosen, in whatever order they stand and wherever their pages end. Of equal ones it is the first.
func TestChooseIsTheNewestThatSatisfies(t *testing.T) {
	foreigntest.Sequential(t)

	ranges := []string{
		"", "*", ">=1", "^1.2", "~1.2 || >=3.1", "<2.0.0", ">1 <3 !=2.1.0", "1.x || 3", ">=1.0.0-0", "1 - 2.5", "2.1", "v2.1.0", "9", "<1.0.0-rc.2", "latest", "=1.2.3+b",
		strings.TrimSuffix(strings.Repeat("<0.1||", 32), "||"),
	}
	random := rand.New(rand.NewPCG(1, 2))
	suffixes := []string{"", "", "", "-rc.1", "-rc.2", "-0", "+b", "+c", "-rc.1+b"}

	for range 300 {
		versions := []string{"latest", "", "1.2.3.4", "x"}
		for range random.IntN(40) {
			versions = append(versions, fmt.Sprintf("%d.%d.%d", random.IntN(4), random.IntN(4), random.IntN(3))+suffixes[random.IntN(len(suffixes))])
		}

		random.Shuffle(len(versions), func(i, j int) { versions[i], versions[j] = versions[j], versions[i] })

		for _, wanted := range ranges {
			want := newestOf(versions, wanted)

			if got, err := chooseFrom(t.Context(), versions, wanted); got != want || (err != nil) != (want < 0 && wanted == "latest") {
				t.Errorf("%q among %q: got %d, %v, want %d", wanted, versions, got, err, want)
			}

			tags := &chosenTag{choice: onlyChoosing().newChoice(&Source{Version: wanted})}

			for page := range slices.Chunk(versions, 1+random.IntN(9)) {
				if err := tags.add(t.Context(), page); err != nil {
					t.Fatal(err)
				}
			}

			if want >= 0 && tags.best != versions[want] || want < 0 && tags.best != "" || (tags.failure() != nil) != (want < 0 && wanted == "latest") {
				t.Errorf("%q on pages of %q: got %q, %v, want %d", wanted, versions, tags.best, tags.failure(), want)
			}
		}
	}
}

// newestOf is what has to be chosen, found without a thought for time.
func newestOf(versions []string, wanted string) int {
	if at := slices.Index(versions, wanted); at >= 0 && wanted != "" {
		return at
	}

	constraint, err := semver.NewConstraint(cmp.Or(wanted, "*"))
	if err != nil {
		return -1
	}

	best := -1

	for i, text := range versions {
		version, err := semver.NewVersion(text)
		if err == nil && constraint.Check(version) && (best < 0 || version.GreaterThan(semver.MustParse(versions[best]))) {
			best = i
		}
	}

	return best
}

// many are that many versions, the newest last.
func many(count int) []string {
	versions := make([]string, 0, count)
	for i := range count {
		versions = append(versions, fmt.Sprintf("1.%d.0", i))
	}

	return versions
}

// A bound counts versions and parts together, and long versions for more. An exact match needs no comparison.
func TestChooseIsBounded(t *testing.T) {
	foreigntest.Sequential(t)

	long := many(40_000)
	for i := range long {
		long[i] += "-" + strings.Repeat("a", 200)
	}

	for name, test := range map[string]struct {
		versions []string
		wanted   string
		want     int // -1: too many
	}{
		"all tags that a chart may have":   {many(maxTags), ">=1.2 <2", maxTags - 1},
		"with more parts":                  {many(maxTags), ">=1.2 <2 !=1.7.1", -1},
		"fewer versions":                   {many(10_000), ">=1.2 <2 !=1.7.1", 9999},
		"with many parts":                  {many(10_000), strings.Repeat(">=1 ", 40), -1},
		"with many alternatives":           {many(10_000), "1" + strings.Repeat("||>9", 31), -1},
		"long versions":                    {long, ">=1.0.0-0", -1},
		"many times as many":               {many(1_000_000), "", -1},
		"what is no version":               {append(slices.Repeat([]string{"sha256-" + strings.Repeat("0", 64) + ".sig", "v", ""}, maxTags), "1.0.0"), "", 3 * maxTags},
		"one of them":                      {many(1_000_000), "1.999999.0", 999_999},
		"one of them that is a range, too": {append(many(1_000_000), "1.5"), "1.5", 1_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseFrom(t.Context(), test.versions, test.wanted)

			var failure *Error
			if got != test.want || (err == nil) != (test.want >= 0) || err != nil && (!errors.As(err, &failure) || failure.Reason != TooLarge) {
				t.Errorf("got %d, %v, want %d", got, err, test.want)
			}
		})
	}
}

// A comparison ends with its context, and a tenant has one at a time; others go on.
func TestChooseWaitsForItsTenant(t *testing.T) {
	f := onlyChoosing()
	mine, others := &Source{Version: ">=1", Tenant: "mine"}, &Source{Version: ">=1", Tenant: "others"}

	release, err := f.choosing.Acquire(t.Context(), "mine", 1)
	if err != nil {
		t.Fatal(err)
	}

	if at, err := choose(t.Context(), f.newChoice(others), slices.All(many(3))); at != 2 || err != nil {
		t.Errorf("got %d, %v", at, err)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	wantTimeout := func(source *Source, words string) {
		t.Helper()

		var failure *Error
		if at, err := choose(ended, f.newChoice(source), slices.All(many(3))); !errors.As(err, &failure) || failure.Reason != Timeout || !strings.Contains(failure.Message, words) {
			t.Errorf("got %d, %v", at, err)
		}
	}

	wantTimeout(mine, "waited in vain")
	release()

	if at, err := choose(t.Context(), f.newChoice(mine), slices.All(many(3))); at != 2 || err != nil {
		t.Errorf("got %d, %v", at, err)
	}

	ended, cancel = context.WithCancel(t.Context())
	defer cancel()

	// It ends between two versions.
	seen := 0
	_, err = f.newChoice(mine).compare(ended, func(yield func(int, string) bool) {
		for i, version := range many(10 * comparedAtOnce) {
			if seen = i; i == comparedAtOnce/2 {
				cancel()
			}

			if !yield(i, version) {
				return
			}
		}
	})

	var failure *Error
	if !errors.As(err, &failure) || failure.Reason != Timeout || seen != comparedAtOnce {
		t.Errorf("got %v after %d versions", err, seen)
	}
}
