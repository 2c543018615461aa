package omni_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/foreign/redact"
	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestMessage(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"nil": {nil, ""},
		"gRPC wrapping goes": {
			status.Error(codes.InvalidArgument, "failed to validate: 1 error occurred:\n\t* machine class \"x\" doesn't exist\n\n"),
			`Omni refuses this: failed to validate: 1 error occurred: * machine class "x" doesn't exist`,
		},
		"the lead is not said twice": {
			fmt.Errorf("update Cluster \"c\": Omni refuses this: %w", status.Error(codes.InvalidArgument, "no")),
			`update Cluster "c": Omni refuses this: no`,
		},
		"what the client library refuses, Omni did not see": {
			fmt.Errorf("%w: patch \"a\" is invalid", omni.ErrTemplate), `the Omni client of this build refuses the cluster template: patch "a" is invalid`,
		},
		"our own sentinels speak for themselves": {omni.ErrKeyEmpty, omni.ErrKeyEmpty.Error()},
		"no lead for not ready":                  {omni.ErrNotSynced, "the local copy of Omni's resources is not complete"},
		"control characters":                     {errors.New("a\x00b\x1b[31mc"), "Omni failed to answer: a b [31mc"},
		"a host name that does not resolve": {
			status.Error(codes.Unavailable, "name resolver error: produced zero addresses"),
			"Omni cannot be reached: the host name of the endpoint does not resolve to an address (DNS)",
		},
		"an expired key, in the words of the library": {
			errors.New("read from Omni: failed to sign message: gopenpgp: error in signing: openpgp: invalid argument: no valid signing keys"),
			"read from Omni: " + omni.ErrKeyExpired.Error(),
		},
		"a token is removed": {
			errors.New("bearer " + strings.Repeat("eyJhbGciOi", 12) + " was bad"),
			"Omni failed to answer: bearer [removed] was bad",
		},
		"a PGP block is removed": {
			errors.New("key -----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK----- bad"),
			"Omni failed to answer: key [removed] bad",
		},
		"an open PGP block is removed": {
			errors.New("key -----BEGIN PGP PRIVATE KEY BLOCK-----\nabc"), "Omni failed to answer: key [removed]",
		},
		"a sha256 stays": {
			errors.New(strings.Repeat("0123abcd", 8)), "Omni failed to answer: " + strings.Repeat("0123abcd", 8),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := omni.Message(test.err); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestMessageIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("word ", 1000), strings.Repeat("é ", 2000)} {
		got := omni.Message(errors.New(text))
		if len(got) > redact.MaxBytes || !strings.HasSuffix(got, "...") || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %v: %q", len(got), utf8.ValidString(got), got[len(got)-10:])
		}
	}
}
