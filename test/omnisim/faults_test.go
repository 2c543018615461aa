package omnisim_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// TestFaultAfterSomeWrites checks that a fault of writes lets the first writes pass, then hits, and calls OnHit.
func TestFaultAfterSomeWrites(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)
	hits := 0

	sim.Inject(omnisim.Fault{Writes: true, After: 2, Times: 1, Code: codes.Unavailable, OnHit: func() { hits++ }})
	wantCode(t, st.Create(ctx, testCluster("a")), "", "")
	wantCode(t, list(ctx, st), "", "")
	wantCode(t, st.Create(ctx, testCluster("b")), "", "")
	wantCode(t, list(ctx, st), "", "")

	_, err := st.Teardown(ctx, testCluster("a").Metadata())
	wantCode(t, err, "Unavailable", "injected")

	if hits != 1 {
		t.Errorf("told of %d hits, want 1", hits)
	}

	wantCode(t, st.Create(ctx, testCluster("c")), "", "")
}

// TestFaultThatLosesTheAnswer checks that the request is carried out, although its caller gets an error.
func TestFaultThatLosesTheAnswer(t *testing.T) {
	sim := start(t, omnisim.Options{})
	ctx, st := deadline(t), operator(t, sim)

	sim.Inject(omnisim.Fault{Method: "Create", Times: 1, AnswerLost: true, Code: codes.Unavailable})
	wantCode(t, st.Create(ctx, testCluster("a")), "Unavailable", "injected")

	if _, err := st.Get(ctx, testCluster("a").Metadata()); err != nil {
		t.Error(err)
	}
}
