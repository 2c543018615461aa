package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestMarkProxied(t *testing.T) {
	for _, test := range []struct {
		name     string
		header   string // X-Remote-User as sent
		believed bool   // the library takes the header off
		want     bool
	}{
		{"through the front proxy", "alice", true, true},
		{"forged", "alice", false, false},
		{"direct", "", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
				if test.believed {
					request.Header.Del("X-Remote-User")
				}

				return &authenticator.Response{User: &user.DefaultInfo{Name: "alice", Groups: []string{"a"}}}, true, nil
			})

			request := httptest.NewRequest(http.MethodGet, "/apis", nil)
			if test.header != "" {
				request.Header.Set("X-Remote-User", test.header)
			}

			response, ok, err := markProxied(inner, func() []string { return []string{"X-Remote-User"} }).AuthenticateRequest(request)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}

			if _, got := response.User.(proxied); got != test.want || response.User.GetName() != "alice" || len(response.User.GetGroups()) != 1 {
				t.Errorf("marked %v, want %v: %v", got, test.want, response.User)
			}
		})
	}
}

// reviewer allows what its table lists, by "user verb name", and records the questions.
type reviewer struct {
	authorizer.Authorizer

	allows map[string]bool
	asked  []string
}

func (r *reviewer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	question := a.GetUser().GetName() + " " + a.GetVerb() + " " + a.GetName()
	r.asked = append(r.asked, question)

	if r.allows[question] {
		return authorizer.DecisionAllow, "", nil
	}

	return authorizer.DecisionNoOpinion, "", nil
}

func TestGrantFirst(t *testing.T) {
	direct := &user.DefaultInfo{Name: "alice"}

	for _, test := range []struct {
		name   string
		user   user.Info
		object string
		allows map[string]bool
		want   authorizer.Decision
		asked  []string
	}{
		{"all names are allowed", proxied{direct}, "demo", map[string]bool{"alice get ": true}, authorizer.DecisionAllow, []string{"alice get "}},
		{
			"one name is allowed", proxied{direct}, "demo", map[string]bool{"alice get demo": true}, authorizer.DecisionAllow,
			[]string{"alice get ", "alice get demo"},
		},
		{"nothing is allowed", proxied{direct}, "demo", nil, authorizer.DecisionNoOpinion, []string{"alice get ", "alice get demo"}},
		{"direct: the name is asked about", direct, "demo", map[string]bool{"alice get ": true}, authorizer.DecisionNoOpinion, []string{"alice get demo"}},
		{"no name: one question", proxied{direct}, "", map[string]bool{"alice get ": true}, authorizer.DecisionAllow, []string{"alice get "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			question := questionAbout(test.object)
			question.User = test.user

			checkGrantFirst(t, question, question, test.allows, test.want, test.asked)
		})
	}
}

// The hub has authorised the request itself, but no further question that it causes: an authoriser of the hub may
// deny the one name that such a question is about.
func TestGrantFirstIsForTheRequestItself(t *testing.T) {
	for name, change := range map[string]func(*authorizer.AttributesRecord){
		"another verb":        func(a *authorizer.AttributesRecord) { a.Verb = "create" },
		"another object":      func(a *authorizer.AttributesRecord) { a.Name = "other" },
		"another namespace":   func(a *authorizer.AttributesRecord) { a.Namespace = "b" },
		"another group":       func(a *authorizer.AttributesRecord) { a.APIGroup = "apps" },
		"another version":     func(a *authorizer.AttributesRecord) { a.APIVersion = "v1" },
		"another resource":    func(a *authorizer.AttributesRecord) { a.Resource = "omniworkers" },
		"another subresource": func(a *authorizer.AttributesRecord) { a.Subresource = "template" },
		"a path":              func(a *authorizer.AttributesRecord) { a.ResourceRequest = false },
	} {
		t.Run(name, func(t *testing.T) {
			question := questionAbout("demo")
			request := question
			change(&question)

			exact := "alice " + question.Verb + " " + question.Name
			allows := map[string]bool{"alice " + question.Verb + " ": true}
			checkGrantFirst(t, request, question, allows, authorizer.DecisionNoOpinion, []string{exact})
		})
	}

	t.Run("no request", func(t *testing.T) {
		asked := &reviewer{allows: map[string]bool{"alice get ": true}}

		decision, _, err := namesLast{asked}.Authorize(t.Context(), questionAbout("demo"))
		if err != nil || decision != authorizer.DecisionNoOpinion || len(asked.asked) != 1 {
			t.Errorf("decision %v, %v, asked %q", decision, err, asked.asked)
		}
	})
}

// questionAbout is a question of a user whom the front proxy vouches for.
func questionAbout(object string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: proxied{&user.DefaultInfo{Name: "alice"}}, Verb: "get", Namespace: "a", Name: object,
		APIGroup: "omni.texashpc.com", APIVersion: "v1alpha1", Resource: "omniclusters", ResourceRequest: true,
	}
}

// checkGrantFirst asks the question during the request.
func checkGrantFirst(t *testing.T, request, question authorizer.AttributesRecord, allows map[string]bool, want authorizer.Decision, wantAsked []string) {
	t.Helper()

	asked := &reviewer{allows: allows}
	ctx := genericapirequest.WithRequestInfo(t.Context(), &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: request.Verb, Namespace: request.Namespace, Name: request.Name,
		APIGroup: request.APIGroup, APIVersion: request.APIVersion, Resource: request.Resource, Subresource: request.Subresource,
	})

	decision, _, err := namesLast{asked}.Authorize(ctx, question)
	if err != nil || decision != want {
		t.Errorf("decision %v, %v, want %v", decision, err, want)
	}

	if diff := cmp.Diff(wantAsked, asked.asked); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}
