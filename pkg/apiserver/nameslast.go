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
// The library asks the hub by a SubjectAccessReview and caches the answer for some seconds. The cache key has the
// object's name: the first reads of a thousand objects need a thousand reviews. kube-apiserver has already authorised
// the request before it passed it on. So this authoriser first asks without the name, which the cache mostly answers,
// and asks with the name only if the first answer is not "allowed".
//
// An authoriser of the hub may deny single names. Therefore every question that kube-apiserver has not answered
// itself is asked only with the name: for requests that did not come through kube-apiserver, for requests that
// impersonate somebody here, and for the further questions of a request, such as the one for create of an apply that
// makes its object, or those of an admission policy.
func AuthorizeNamesLast(config *genericapiserver.Config) {
	headers := config.Authentication.RequestHeaderConfig
	if headers == nil {
		return
	}

	config.Authentication.Authenticator = markProxied(config.Authentication.Authenticator, headers.UsernameHeaders.Value)
	config.Authorization.Authorizer = namesLast{config.Authorization.Authorizer}
}

// proxied is a user whom the front proxy has authenticated.
type proxied struct{ user.Info }

// markProxied marks the users of requests whose front-proxy headers were accepted. The library removes these headers
// from a request if, and only if, it accepts them.
func markProxied(inner authenticator.Request, headers func() []string) authenticator.Request {
	return authenticator.RequestFunc(func(request *http.Request) (*authenticator.Response, bool, error) {
		names := headers() // of this request: they may change meanwhile
		named := func() bool {
			return slices.ContainsFunc(names, func(header string) bool { return request.Header.Get(header) != "" })
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

// namesLast asks for permission on all names before it asks for one name.
type namesLast struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (n namesLast) Authorize(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if _, vouched := asked.GetUser().(proxied); vouched && asked.GetName() != "" && isTheRequest(ctx, asked) {
		if decision, reason, err := n.Authorizer.Authorize(ctx, anyName{asked}); decision == authorizer.DecisionAllow && err == nil {
			return decision, reason, nil
		}
	}

	return n.Authorizer.Authorize(ctx, asked) // the caller knows the library's errors
}

// isTheRequest reports whether the question is about the request in the context itself, and not a further question.
func isTheRequest(ctx context.Context, asked authorizer.Attributes) bool {
	request, found := genericapirequest.RequestInfoFrom(ctx)

	return found && request.IsResourceRequest && asked.IsResourceRequest() &&
		request.Verb == asked.GetVerb() && request.Namespace == asked.GetNamespace() && request.Name == asked.GetName() &&
		request.APIGroup == asked.GetAPIGroup() && request.APIVersion == asked.GetAPIVersion() &&
		request.Resource == asked.GetResource() && request.Subresource == asked.GetSubresource()
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (n namesLast) ConditionsAwareAuthorize(ctx context.Context, asked authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(n.Authorize(ctx, asked))
}

// anyName is the attributes of a request about every object instead of one. It has no path, because the path holds
// the name too.
type anyName struct{ authorizer.Attributes }

// GetName implements authorizer.Attributes.
func (anyName) GetName() string { return "" }

// GetPath implements authorizer.Attributes.
func (anyName) GetPath() string { return "" }
