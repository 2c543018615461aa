package omni

import (
	"errors"
	"strings"
	"testing"
)

func TestOrigins(t *testing.T) {
	for name, test := range map[string]struct {
		allowed, endpoint string
		want              bool
	}{
		"the same":                {"https://omni.example.com", "https://omni.example.com", true},
		"a slash":                 {"https://omni.example.com/", "https://omni.example.com", true},
		"the default port":        {"https://omni.example.com", "https://omni.example.com:443/", true},
		"another way to write it": {"https://omni.example.com:0443", "https://omni.example.com", true},
		"case":                    {"https://Omni.Example.com", "HTTPS://omni.EXAMPLE.com", true},
		"one of several":          {"https://a.example.com, https://b.example.com\nhttps://c.example.com", "https://b.example.com", true},
		"plaintext by two names":  {"http://omni.example.com", "grpc://omni.example.com:80", true},
		"an IPv6 address":         {"https://[2001:DB8:0::1]:8443", "https://[2001:db8::1]:8443", true},
		"an IPv4 address in IPv6": {"https://192.0.2.1", "https://[::ffff:192.0.2.1]", true},
		"none":                    {"", "https://omni.example.com", false},
		"another port":            {"https://omni.example.com", "https://omni.example.com:8443", false},
		"another scheme":          {"https://omni.example.com", "http://omni.example.com:443", false},
		"a subdomain":             {"https://example.com", "https://omni.example.com", false},
		"a name that begins so":   {"https://omni.example.com", "https://omni.example.com.example.org", false},
		"user info":               {"https://omni.example.com", "https://omni.example.com@example.org", false},
		"user info with the name": {"https://example.org", "https://omni.example.com@example.org", false},
		"a root dot":              {"https://omni.example.com", "https://omni.example.com.", false},
		"no URL":                  {"https://omni.example.com", "omni.example.com", false},
	} {
		t.Run(name, func(t *testing.T) {
			origins, err := ParseOrigins(test.allowed)
			if err != nil {
				t.Fatal(err)
			}

			if got := origins.Allow(test.endpoint); got != test.want {
				t.Errorf("allowed: %v", got)
			}

			// A list is no endpoint.
			if got := SameOrigin(test.allowed, test.endpoint); got != test.want && len(origins) == 1 {
				t.Errorf("the same: %v", got)
			}
		})
	}
}

func TestOriginsThatDoNotParse(t *testing.T) {
	for _, text := range []string{
		"*", "https://*", "https://*.example.com/x", "omni.example.com", "https://", "ftp://omni.example.com", "https://user:hunter2hunter2@omni.example.com",
	} {
		_, err := ParseOrigins("https://a.example.com," + text)
		if !errors.Is(err, ErrEndpoint) || !strings.Contains(err.Error(), "entry 2") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSameThatDoesNotParse: an endpoint that was recorded before a rule existed may not parse any more.
func TestSameThatDoesNotParse(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"omni", "omni", true}, {"omni", "https://omni", false}, {"https://omni", "omni", false}, {"", "https://omni", false}, {"", "", true},
	} {
		if got := SameOrigin(test.a, test.b); got != test.want {
			t.Errorf("%q and %q: %v", test.a, test.b, got)
		}
	}
}

func TestPlaintext(t *testing.T) {
	for text, want := range map[string]bool{"https://a": false, "http://a": true, "grpc://a:443": true, "a": false} {
		if got := Plaintext(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
