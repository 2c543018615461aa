package session

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"omni.texashpc.com/omni-cluster-operator/pkg/omni"
	"omni.texashpc.com/omni-cluster-operator/test/omnisim"
)

// A gateway that has no route to Omni answers in its own name. That is no answer of Omni: it refuses nothing, and knows no key.
func TestAnswersOfAGateway(t *testing.T) {
	_, key := newAccount(t, startOmni(t, omnisim.Options{}), "operator", omnisim.RoleOperator, time.Hour)

	for _, answer := range []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(answer), func(t *testing.T) {
			var pages atomic.Int64

			gateway := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(answer)
				fmt.Fprintf(w, "<html>support ID %d</html>", pages.Add(1))
			}))
			gateway.EnableHTTP2 = true
			gateway.StartTLS()
			t.Cleanup(gateway.Close)

			client, err := newClient(Config{
				Endpoint: gateway.URL, Key: key,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: gateway.Certificate().Raw}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()

			first, second := client.Check(t.Context()), client.Check(t.Context())

			if class := omni.Classify(first); class != omni.ClassTransient {
				t.Errorf("%v is %q", first, class)
			}

			if code, _ := omni.CodeOf(first); code != codes.Unavailable {
				t.Errorf("the code is %s", code)
			}

			said := omni.Message(first)
			if said != omni.Message(second) || strings.Contains(said, "html>") || !strings.Contains(said, fmt.Sprintf("HTTP %d (%s)", answer, http.StatusText(answer))) {
				t.Errorf("it says %q, then %q", said, omni.Message(second))
			}

			if client.Refusals() != 0 {
				t.Error("it counts as Omni's refusal of the key")
			}
		})
	}
}
