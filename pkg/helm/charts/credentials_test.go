package charts

import (
	"fmt"
	"strings"
	"testing"
)

func TestCredentialsFrom(t *testing.T) {
	docker := []byte(`{"auths":{
		"https://index.docker.io/v1/":{"auth":"aHViOmh1YnBhc3M="},
		"registry.example.com":{"username":"u","password":"p"},
		"broken.example.com":{"auth":"***"},
		"shared.example.com/team-b":{"username":"b","password":"p"},
		"shared.example.com":{"username":"all","password":"p"},
		"shared.example.com/team-a":{"username":"a","password":"p"},
		"paths.example.com/team-b":{"username":"b","password":"p"},
		"paths.example.com/team-a":{"username":"a","password":"p"}}}`)

	for _, test := range []struct {
		name, host string
		data       map[string][]byte
		want       Credentials
		err        string
	}{
		{name: "pair", host: "any", data: map[string][]byte{"username": []byte("u\n"), "password": []byte("p q\n")}, want: Credentials{"u", "p q"}},
		{name: "nothing", host: "any", data: map[string][]byte{"user": []byte("u")}, err: "neither username and password"},
		{name: "docker entry", host: "registry.example.com", data: map[string][]byte{".dockerconfigjson": docker}, want: Credentials{"u", "p"}},
		{name: "docker auth", host: "docker.io", data: map[string][]byte{".dockerconfigjson": docker}, want: Credentials{"hub", "hubpass"}},
		{name: "docker host before paths", host: "shared.example.com", data: map[string][]byte{".dockerconfigjson": docker}, want: Credentials{"all", "p"}},
		{name: "docker paths", host: "paths.example.com", data: map[string][]byte{".dockerconfigjson": docker}, want: Credentials{"a", "p"}},
		{name: "docker other host", host: "other.example.com", data: map[string][]byte{".dockerconfigjson": docker}, err: "no entry for other.example.com"},
		{name: "docker broken entry", host: "broken.example.com", data: map[string][]byte{".dockerconfigjson": docker}, err: "not readable"},
		{name: "docker broken", host: "x", data: map[string][]byte{".dockerconfigjson": []byte("secret-text")}, err: "not a Docker configuration"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := CredentialsFrom(t.Context(), test.data, test.host)

			for range 20 { // the entries are a map
				if again, _ := CredentialsFrom(t.Context(), test.data, test.host); again != got {
					t.Fatalf("another answer: %q and %q", again.Username, got.Username)
				}
			}

			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %q", err, test.err)
				}

				return
			}

			if err != nil || got.Username != test.want.Username || got.Password != test.want.Password {
				t.Errorf("got %q/%q, %v", got.Username, got.Password, err)
			}
		})
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	source := Source{Credentials: Credentials{"canary-user", "canary-password"}}

	for _, text := range []string{fmt.Sprint(source), fmt.Sprintf("%+v", source), fmt.Sprintf("%#v", source)} {
		if strings.Contains(text, "canary") {
			t.Error(text)
		}
	}
}

func TestSameDomain(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"auth.docker.io", "registry-1.docker.io", true},
		{"ghcr.io", "ghcr.io", true},
		{"gitlab.example.com", "registry.example.com:5050", true},
		{"evil.example.net", "registry.example.com", false},
		{"a.co.uk", "b.co.uk", false},
		{"10.0.0.1", "192.168.0.1", false},
		{"10.0.0.1:1", "10.0.0.1:2", true},
		{"localhost", "registry", false},
	} {
		if got := sameDomain(test.a, test.b); got != test.want {
			t.Errorf("sameDomain(%s, %s) = %v", test.a, test.b, got)
		}
	}
}
