package charts

import (
	"strings"

	"github.com/Masterminds/semver/v3"
)

// choose returns the index of the version that is asked for: an exact match of
// the text, else the newest version inside the range; empty means the newest
// stable one. It returns -1 if there is none, and an *Error for a range that
// cannot be read. Versions that are no semantic versions match exactly only.
func choose(versions []string, wanted string) (int, error) {
	if wanted != "" {
		for i, version := range versions {
			if version == wanted {
				return i, nil
			}
		}
	}

	text := wanted
	if text == "" {
		text = "*"
	}

	constraint, err := semver.NewConstraint(text)
	if err != nil {
		return -1, fail(Invalid, "chart.version %q is neither a version of the chart nor a range of versions", wanted)
	}

	best := -1

	var newest *semver.Version

	for i, text := range versions {
		version, err := semver.NewVersion(text)
		if err != nil || !constraint.Check(version) {
			continue
		}

		if newest == nil || version.GreaterThan(newest) {
			best, newest = i, version
		}
	}

	return best, nil
}

// isExact reports whether a text is one version and no range.
func isExact(text string) bool {
	_, err := semver.StrictNewVersion(strings.TrimPrefix(text, "v"))

	return err == nil
}

// describe says in words which version was asked for.
func describe(wanted string) string {
	if wanted == "" {
		return "stable version"
	}

	return "version " + wanted
}
