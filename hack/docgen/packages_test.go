package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A package sets the reasons that it names, but for those that it only compares with.
func TestConstantsIn(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", `package a

func f(reason string) string {
	switch {
	case reason == v1alpha1.ReasonEqual, v1alpha1.ReasonOther != reason, reason == g(v1alpha1.ReasonArgument):
		return v1alpha1.ReasonReturned
	}

	switch reason {
	case v1alpha1.ReasonCase:
		return v1alpha1.ConditionReady
	}

	return other.ReasonElsewhere
}`, 0)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"ReasonArgument", "ReasonReturned"}, constantsIn(file, "Reason")); diff != "" {
		t.Error(diff)
	}
}
