package words_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/words"
)

func TestForms(t *testing.T) {
	moment := time.Date(2026, 11, 27, 13, 0, 0, 999_999_999, time.FixedZone("east", 3600))

	if got := words.Time(moment); got != "2026-11-27T12:00:00Z" {
		t.Errorf("text %s", got)
	}

	if got := words.TimeWithZone(moment); got != "Fri 2026-11-27 13:00 east" {
		t.Errorf("shown %s", got)
	}

	if got := moment.UTC().Format(words.TimeInNames); got != "20261127T120000Z" {
		t.Errorf("in names %s", got)
	}

	stored := words.StoredTime(moment)

	text, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}

	// What the API gives back is what was stored, so that a second run writes nothing.
	var read metav1.Time
	if err := json.Unmarshal(text, &read); err != nil || !read.Equal(&stored) || string(text) != `"2026-11-27T12:00:00Z"` {
		t.Errorf("stored as %s, read as %s: %v", text, read, err)
	}
}
