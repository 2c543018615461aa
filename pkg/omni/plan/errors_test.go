package plan

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
)

func TestChangeErrorIsClassifiedByItsCause(t *testing.T) {
	for name, test := range map[string]struct {
		err  *ChangeError
		want omni.Class
	}{
		"by its class": {&ChangeError{Class: omni.ClassDenied, cause: errors.New("x")}, omni.ClassDenied},
		"by its cause": {&ChangeError{cause: status.Error(codes.NotFound, "x")}, omni.ClassGone},
	} {
		if got := omni.Classify(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestMessageOfAnExpiredKeyDuringAChange(t *testing.T) {
	err := &ChangeError{
		Change: Change{Action: ActionCreate, Type: TypeCluster, ID: "c"}, Class: omni.ClassKeyExpired,
		cause: errors.New("failed to sign message: gopenpgp: error in signing: openpgp: invalid argument: no valid signing keys"),
	}

	if got, want := omni.Message(err), `create Cluster "c": `+omni.ErrKeyExpired.Error(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
