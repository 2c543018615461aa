package app

import (
	"os"
	"path/filepath"
	"testing"
)

func TestContainerMemory(t *testing.T) {
	for _, test := range []struct {
		name, path, content string
		want                int64
		fails               bool
	}{
		{"version 2", cgroupLimits[0], "1073741824\n", 1 << 30, false},
		{"version 2, no limit", cgroupLimits[0], "max\n", 0, false},
		{"version 1", cgroupLimits[1], "536870912\n", 1 << 29, false},
		{"version 1, no limit", cgroupLimits[1], "9223372036854771712\n", 0, false},
		{"no cgroup", "other", "", 0, false},
		{"nonsense", cgroupLimits[0], "much", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, test.path)

			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}

			if got, err := containerMemory(root); got != test.want || (err != nil) != test.fails {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}
