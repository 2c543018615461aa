package rollout

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mostConcurrent is how many clusters of a stage may have changes in progress, whatever a percentage allows.
const mostConcurrent = 100

// StageOf returns the stage of a cluster with these labels: the first one whose selector matches. A stage without a
// selector (nil) takes every cluster. It returns -1 if no stage matches.
func StageOf(selectors []labels.Selector, of labels.Labels) int {
	for i, selector := range selectors {
		if selector == nil || selector.Matches(of) {
			return i
		}
	}

	return -1
}

// ConcurrentOf returns how many of the given number of clusters may have changes in progress at the same time. A
// percentage is rounded down; the result is at least 1 and at most 100. The error names the value.
func ConcurrentOf(limit intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parseShare(limit)
	if err != nil {
		return 0, err
	}

	if percent {
		share = share * clusters / 100
	}

	return min(max(share, 1), mostConcurrent), nil
}

// NeededOf returns how many of the given number of clusters have to run a version before the next stage takes it. A
// percentage is rounded up; the result is at least 1. If it is more than there are clusters, the stage proves
// nothing. The error names the value.
func NeededOf(least intstr.IntOrString, clusters int) (int, error) {
	share, percent, err := parseShare(least)
	if err != nil {
		return 0, err
	}

	if percent {
		share = (share*clusters + 99) / 100
	}

	return max(share, 1), nil
}

// parseShare reads a number from 1 to 100, or a percentage from 1% to 100%.
func parseShare(value intstr.IntOrString) (number int, percent bool, err error) {
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
