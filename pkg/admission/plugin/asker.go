package plugin

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Asker asks the authorizer of the API server. Plugins embed it.
type Asker struct{ authorizer authorizer.Authorizer }

// SetAuthorizer sets the authorizer that is asked.
func (a *Asker) SetAuthorizer(authorizer authorizer.Authorizer) { a.authorizer = authorizer }

// Initialized returns an error, with the name of the plugin, if there is no authorizer.
func (a *Asker) Initialized(plugin string) error {
	if a.authorizer == nil {
		return fmt.Errorf("%s has no authorizer", plugin)
	}

	return nil
}

// Question is what the user of a request must be allowed to do.
type Question struct {
	// Field of the object asks for it.
	Field string
	// Right is what is asked of the authorizer, without the user.
	Right authorizer.AttributesRecord
	// Act is the same for messages, such as `get secrets "a" in namespace "b"`.
	Act string
	// Otherwise is what a user without the right cannot have, for messages: the end of a sentence that says what the user
	// cannot do.
	Otherwise string
}

// Ask returns nil if the user of the request may do it. Else it refuses the request: as forbidden, or, if the authorizer
// gives no answer, as unavailable.
func (a *Asker) Ask(ctx context.Context, attributes admission.Attributes, question Question) error {
	right := question.Right
	right.User, right.ResourceRequest = attributes.GetUserInfo(), true

	decision, reason, err := a.authorizer.Authorize(ctx, right)

	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("%s: whether you may %s could not be found out, try again: %v", question.Field, question.Act, err))
	}

	refusal := fmt.Sprintf("%s: user %q cannot %s, %s: ask for that right, or have somebody with it make this change",
		question.Field, right.User.GetName(), question.Act, question.Otherwise)
	if reason != "" {
		refusal += " (" + reason + ")"
	}

	return admission.NewForbidden(attributes, errors.New(refusal))
}
