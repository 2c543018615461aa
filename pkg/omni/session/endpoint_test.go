package session

import (
	"testing"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestLibraryURL(t *testing.T) {
	for raw, want := range map[string]struct{ library, ownRoots string }{
		"https://omni.example":       {"https://omni.example:443", "grpc://omni.example:443"},
		"https://omni.example/":      {"https://omni.example:443", "grpc://omni.example:443"},
		"https://omni.example:8443":  {"https://omni.example:8443", "grpc://omni.example:8443"},
		"http://omni.example":        {"grpc://omni.example:80", "grpc://omni.example:80"},
		"grpc://127.0.0.1:8080":      {"grpc://127.0.0.1:8080", "grpc://127.0.0.1:8080"},
		"https://[2001:db8::1]":      {"https://[2001:db8::1]:443", "grpc://[2001:db8::1]:443"},
		"https://[2001:db8::1]:8443": {"https://[2001:db8::1]:8443", "grpc://[2001:db8::1]:8443"},
	} {
		got, err := omni.ParseOrigin(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)

			continue
		}

		if libraryURL(got, false) != want.library || libraryURL(got, true) != want.ownRoots {
			t.Errorf("%s: %s, %s", raw, libraryURL(got, false), libraryURL(got, true))
		}
	}
}
