package charts

import "testing"

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
			at, err := choose(versions, test.wanted)
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
	if _, err := choose([]string{"1.0.0"}, "not a version"); err == nil {
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
