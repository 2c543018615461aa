package apiserver

import (
	"os"
	"path/filepath"
	"testing"

	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

func evaluator(t *testing.T, policyFile string) audit.PolicyRuleEvaluator {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())

	options := genericoptions.NewAuditOptions()
	options.PolicyFile = policyFile

	config := &genericapiserver.Config{}
	if err := ApplyAudit(options, config); err != nil {
		t.Fatal(err)
	}

	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	return config.AuditPolicyRuleEvaluator
}

func TestDefaultAuditPolicy(t *testing.T) {
	rules := evaluator(t, "")

	tests := []struct {
		name       string
		attributes authorizer.AttributesRecord
		want       auditinternal.Level
	}{
		{"write", authorizer.AttributesRecord{
			Verb: "create", APIGroup: "omni.texashpc.com", Resource: "omniclusters", ResourceRequest: true,
		}, auditinternal.LevelMetadata},
		{"read", authorizer.AttributesRecord{
			Verb: "list", APIGroup: "omni.texashpc.com", Resource: "omnimachines", ResourceRequest: true,
		}, auditinternal.LevelMetadata},
		{"discovery", authorizer.AttributesRecord{Verb: "get", Path: "/apis"}, auditinternal.LevelMetadata},
		{"probe", authorizer.AttributesRecord{Verb: "get", Path: "/readyz"}, auditinternal.LevelNone},
		{"metrics", authorizer.AttributesRecord{Verb: "get", Path: "/metrics"}, auditinternal.LevelNone},
	}
	for _, test := range tests {
		test.attributes.User = &user.DefaultInfo{Name: "alice"}

		if got := rules.EvaluatePolicyRule(test.attributes).Level; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestOwnAuditPolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"

	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}

	attributes := authorizer.AttributesRecord{User: &user.DefaultInfo{}, Verb: "get", Path: "/readyz"}
	if got := evaluator(t, file).EvaluatePolicyRule(attributes).Level; got != auditinternal.LevelRequestResponse {
		t.Errorf("level %s", got)
	}
}
