package main

import (
	"fmt"
	"strconv"
	"time"
)

// figure is one measured number, with what it should be.
type figure struct {
	// Part is the letter of the benchmark's part, a to i.
	Part string `json:"part"`
	// Name says what was measured, for people.
	Name string `json:"name"`
	// Value in Unit.
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Aim is what Value should be; nil: reported for information only.
	Aim *aim `json:"aim,omitempty"`
	// Note says what the number does not show by itself.
	Note string `json:"note,omitempty"`
}

// aim is a bound.
type aim struct {
	// Above: the value should be greater than Bound. Otherwise it should be less, or, with Equal,
	// the same.
	Above bool    `json:"above,omitempty"`
	Equal bool    `json:"equal,omitempty"`
	Bound float64 `json:"bound"`
}

func above(bound float64) *aim   { return &aim{Above: true, Bound: bound} }
func below(bound float64) *aim   { return &aim{Bound: bound} }
func exactly(bound float64) *aim { return &aim{Equal: true, Bound: bound} }

// met reports whether a value is where it should be.
func (a aim) met(value float64) bool {
	switch {
	case a.Equal:
		return value == a.Bound
	case a.Above:
		return value > a.Bound
	default:
		return value < a.Bound
	}
}

// String is the aim as a table shows it.
func (a aim) String() string {
	sign := "<"

	switch {
	case a.Equal:
		sign = "="
	case a.Above:
		sign = ">"
	}

	return sign + " " + number(a.Bound)
}

// verdict is yes, NO, or nothing where there is no aim.
func (f figure) verdict() string {
	switch {
	case f.Aim == nil:
		return ""
	case f.Aim.met(f.Value):
		return "yes"
	default:
		return "NO"
	}
}

// number has three significant digits, and no exponent.
func number(value float64) string {
	if size := max(value, -value); size >= 100 || size == 0 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	} else if size >= 10 {
		return strconv.FormatFloat(value, 'f', 1, 64)
	} else if size >= 1 {
		return strconv.FormatFloat(value, 'f', 2, 64)
	}

	return strconv.FormatFloat(value, 'f', 3, 64)
}

// goLine is one result in the format of Go's benchmarks, which benchstat reads. Lines of the same
// name are repetitions.
type goLine struct {
	name  string
	count int
	per   time.Duration
	extra []metric
}

// metric is a value with its unit, as testing.B.ReportMetric takes it.
type metric struct {
	value float64
	unit  string
}

func (l goLine) String() string {
	line := fmt.Sprintf("Benchmark%s\t%8d\t%12d ns/op", l.name, l.count, l.per.Nanoseconds())
	for _, m := range l.extra {
		line += fmt.Sprintf("\t%12s %s", strconv.FormatFloat(m.value, 'g', 6, 64), m.unit)
	}

	return line
}
