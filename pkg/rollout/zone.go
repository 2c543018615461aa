package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image has no zones of its own
)

// errZone is the remedy in the error for an invalid zone name.
var errZone = errors.New(`use "UTC", or a name of the IANA database with a slash, such as "Europe/Berlin"`)

// Zone returns the time zone with a name: UTC, or a name with a slash from the IANA database. Names without a slash,
// such as CET, are refused: they exist for old programs, and some of them have no summer time where people expect it.
// The error says what to use instead.
func Zone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}

	// Etc/GMT+1 is one hour west of Greenwich, which nobody expects.
	if !strings.Contains(name, "/") || strings.HasPrefix(name, "Etc/") {
		return nil, fmt.Errorf("%q is not a time zone that says which rules it follows: %w", name, errZone)
	}

	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone %q: %w", name, errZone)
	}

	return zone, nil
}
