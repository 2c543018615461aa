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

// reviewer allows what its table says, by "user verb name", and notes what it was asked.
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
			asked := &reviewer{allows: test.allows}

			decision, _, err := grantFirst{asked}.Authorize(t.Context(),
				authorizer.AttributesRecord{User: test.user, Verb: "get", Name: test.object, Resource: "omniclusters", ResourceRequest: true})
			if err != nil || decision != test.want {
				t.Errorf("decision %v, %v, want %v", decision, err, test.want)
			}

			if diff := cmp.Diff(test.asked, asked.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}
