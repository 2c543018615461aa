package stage

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mostConcurrent is how many clusters of a stage may be at work whatever a percentage says.
const mostConcurrent = 100

// Of is the stage that takes a cluster with these labels: the first whose selector matches. A stage without a selector (nil)
// takes every cluster. -1 if none does.
func Of(selectors []labels.Selector, of labels.Labels) int {
	for i, selector := range selectors {
		if selector == nil || selector.Matches(of) {
			return i
		}
	}

	return -1
}

// Concurrent is how many of so many clusters may be at work at the same time. A percentage is rounded down, and there is
// always one, and never more than 100. The error names the value.
func Concurrent(limit intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parse(limit)
	if err != nil {
		return 0, err
	}

	if percent {
		share = share * clusters / 100
	}

	return min(max(share, 1), mostConcurrent), nil
}

// Needed is how many of so many clusters have to run a version before the next stage takes it. A percentage is rounded up,
// and there is always one. It may be more than there are: then the stage proves nothing. The error names the value.
func Needed(least intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parse(least)
	if err != nil {
		return 0, err
	}

	if percent {
		share = (share*clusters + 99) / 100
	}

	return max(share, 1), nil
}

// parse reads a number from 1 to 100, or a percentage from 1% to 100%.
func parse(value intstr.IntOrString) (number int, percent bool, err error) {
	number = value.IntValue()

	if value.Type == intstr.String {
		text, found := strings.CutSuffix(value.StrVal, "%")

		number, err = strconv.Atoi(text)
		if err != nil || !found {
			return 0, false, fmt.Errorf("%q is neither a number nor a percentage, such as 10%%", value.StrVal)
		}

		percent = true
	}

	if number < 1 || number > 100 {
		return 0, false, fmt.Errorf("%s is not between 1 and 100", value.String())
	}

	return number, percent, nil
}
