package app

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// rightsAtOnce is how many questions for a right are open at a time. There are about a hundred, and kube-apiserver may
// have to ask a webhook for each.
const rightsAtOnce = 10

// accountRights asks the hub for the rights of the controller's account.
type accountRights struct {
	reviews authorizationclient.SelfSubjectAccessReviewInterface
}

// missing returns those of the rights that the account does not have. What it has found out is there even if it returns an error for
// others.
func (a accountRights) missing(ctx context.Context, rights []authorizationv1.ResourceAttributes) ([]authorizationv1.ResourceAttributes, error) {
	lacks := make([]bool, len(rights))

	var asked errgroup.Group // one that cannot be answered ends none of the others

	asked.SetLimit(rightsAtOnce)

	for i, right := range rights {
		asked.Go(func() error {
			allowed, err := a.allowed(ctx, right)
			lacks[i] = err == nil && !allowed

			return err
		})
	}

	err := asked.Wait()

	var missing []authorizationv1.ResourceAttributes

	for i, right := range rights {
		if lacks[i] {
			missing = append(missing, right)
		}
	}

	return missing, err
}

// allowed asks the hub for one right.
func (a accountRights) allowed(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}

	answer, err := a.reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for the rights of the account: %w", err)
	}

	return answer.Status.Allowed, nil
}
