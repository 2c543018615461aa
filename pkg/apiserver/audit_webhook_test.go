package apiserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"omni.texashpc.com/omni-cluster-operator/pkg/apiserver"
)

// Without a policy of the user's the default one holds for a webhook, too: metadata arrives, and no content.
func TestAuditToAWebhook(t *testing.T) {
	var (
		mu     sync.Mutex
		events []auditv1.Event
	)

	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var list auditv1.EventList
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Error(err)
		}

		mu.Lock()
		defer mu.Unlock()

		events = append(events, list.Items...)
	}))
	t.Cleanup(collector.Close)

	kubeconfig := filepath.Join(t.TempDir(), "audit.kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"+
		"clusters: [{name: a, cluster: {server: %q}}]\n", collector.URL), 0o600); err != nil {
		t.Fatal(err)
	}

	s := startServer(t, withConfig(func(config *apiserver.Config) {
		options := genericoptions.NewAuditOptions()
		options.WebhookOptions.ConfigFile = kubeconfig
		options.WebhookOptions.BatchOptions.Mode = genericoptions.ModeBlocking

		if err := apiserver.ApplyAudit(options, &config.Generic.Config); err != nil {
			t.Fatal(err)
		}
	}))
	s.everyRequest(t)

	mu.Lock()
	defer mu.Unlock()

	created := 0

	for _, event := range events {
		if event.Level != auditv1.LevelMetadata || event.RequestObject != nil || event.ResponseObject != nil {
			t.Errorf("level %s: %+v", event.Level, event)
		}

		if event.Verb == "create" && event.ObjectRef.Name == "one" && event.User.Username == "administrator" && event.ResponseStatus.Code == http.StatusCreated {
			created++
		}
	}

	if created != 1 {
		t.Errorf("%d entries of the creation among %d", created, len(events))
	}
}
