package apiserver

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// AuthorizeNamesLast makes the authorisation of requests that came through the hub's kube-apiserver cheaper.
//
// The library asks the hub by a SubjectAccessReview and remembers the answer for some seconds, but under a key with
// the object's name: the first look at each of a thousand objects is a thousand questions. kube-apiserver has already
// authorised exactly such a request before it passed it on. So the question is asked without the name first, which
// is answered from memory, and again with the name unless that was allowed.
//
// An authoriser of the hub may deny single names. So whatever kube-apiserver has not authorised itself is asked about
// exactly, and only exactly: requests that came past it or impersonate somebody here, and the further questions of a
// request, such as the one for create of an apply that makes its object, or those of an admission policy.
func AuthorizeNamesLast(config *genericapiserver.Config) {
	headers := config.Authentication.RequestHeaderConfig
	if headers == nil {
		return
	}

	config.Authentication.Authenticator = markProxied(config.Authentication.Authenticator, headers.UsernameHeaders.Value)
	config.Authorization.Authorizer = namesLast{config.Authorization.Authorizer}
}

// proxied is a user whom the front proxy vouches for.
type proxied struct{ user.Info }

// markProxied marks the users of requests whose front-proxy headers were believed. The library takes these headers
// off a request when, and only when, it believes them at this point.
func markProxied(inner authenticator.Request, headers func() []string) authenticator.Request {
	return authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		named := func() bool {
			return slices.ContainsFunc(headers(), func(header string) bool { return request.Header.Get(header) != "" })
		}

		before := named()

		response, ok, err := inner.AuthenticateRequest(request)
		if err != nil || !ok || !before || named() {
			return response, ok, err // the caller knows the library's errors
		}

		marked := *response
		marked.User = proxied{response.User}

		return &marked, true, nil
	})
}

// namesLast asks about all names before it asks about one.
type namesLast struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (g namesLast) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, vouched := asked.GetUser().(proxied); vouched && asked.GetName() != "" && isTheRequest(ctx, asked) {
		if decision, reason, err := g.Authorizer.Authorize(ctx, anyName{asked}); decision == authorizer.DecisionAllow && err == nil {
			return decision, reason, nil
		}
	}

	return g.Authorizer.Authorize(ctx, asked) // the caller knows the library's errors
}

// isTheRequest reports whether the question is about the request of the context itself.
func isTheRequest(ctx context.Context, asked authorizer.Attributes) bool {
	request, found := genericapirequest.RequestInfoFrom(ctx)

	return found && request.IsResourceRequest && asked.IsResourceRequest() &&
		request.Verb == asked.GetVerb() && request.Namespace == asked.GetNamespace() && request.Name == asked.GetName() &&
		request.APIGroup == asked.GetAPIGroup() && request.APIVersion == asked.GetAPIVersion() &&
		request.Resource == asked.GetResource() && request.Subresource == asked.GetSubresource()
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (g namesLast) ConditionsAwareAuthorize(ctx context.Context, asked authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(g.Authorize(ctx, asked))
}

// anyName is a request about every object instead of one. Its path, which holds the name too, is left out.
type anyName struct{ authorizer.Attributes }

// GetName implements authorizer.Attributes.
func (anyName) GetName() string { return "" }

// GetPath implements authorizer.Attributes.
func (anyName) GetPath() string { return "" }
