package omni

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]string{
		"https://omni.example":       "omni.example:443",
		"https://omni.example/":      "omni.example:443",
		"https://omni.example:8443":  "omni.example:8443",
		"http://omni.example":        "omni.example:80",
		"grpc://127.0.0.1:8080":      "127.0.0.1:8080",
		"https://[2001:db8::1]":      "[2001:db8::1]:443",
		"https://[2001:db8::1]:8443": "[2001:db8::1]:8443",
	} {
		got, err := ParseOrigin(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)

			continue
		}

		if got.Address() != want {
			t.Errorf("%s: %s", raw, got.Address())
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "omni.example", "omni.example:443", "ftp://omni.example", "https://", "https://:443", "https://user:hunter2@omni.example",
		"https://omni.example?hunter2=1", "https://omni.example#hunter2", "https://omni.example/hunter2", "https://omni.example:0",
		"https://omni.example:99999", "https://omni.example:x", "https://omni\x00hunter2",
	} {
		_, err := ParseOrigin(raw)
		if !errors.Is(err, ErrEndpoint) {
			t.Errorf("%q: %v", raw, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error repeats the input: %v", raw, err)
		}
	}
}
