package omni

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestChangeErrorIsClassifiedByItsCause(t *testing.T) {
	for name, test := range map[string]struct {
		err  *ChangeError
		want Class
	}{
		"by its class": {&ChangeError{Class: ClassDenied, cause: errors.New("x")}, ClassDenied},
		"by its cause": {&ChangeError{cause: status.Error(codes.NotFound, "x")}, ClassGone},
	} {
		if got := Classify(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestMessageOfAnExpiredKeyDuringAChange(t *testing.T) {
	err := &ChangeError{
		Change: Change{Action: ActionCreate, Type: TypeCluster, ID: "c"}, Class: ClassKeyExpired,
		cause: errors.New("failed to sign message: gopenpgp: error in signing: openpgp: invalid argument: no valid signing keys"),
	}

	if got, want := Message(err), `create Cluster "c": `+ErrKeyExpired.Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
