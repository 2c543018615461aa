package helm

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"omni.texashpc.com/omni-cluster-operator/pkg/helm/kubeclient"
	"omni.texashpc.com/omni-cluster-operator/pkg/helm/values"
)

// Mark is a hub to write into the mark of ownership on the record of a revision.
type Mark struct {
	// Revision is the number of the revision.
	Revision int
	// Owner and From are the UID and the hub that the record has to name; another one is left as it is.
	Owner, From string
	// To is the ID of the hub to write.
	To string
	// DryRun has the cluster answer and write nothing.
	DryRun bool
}

// Mark writes a hub into the mark of ownership on a record, with one write that changes nothing else: Helm knows nothing of
// it, and no revision is made. It updates instead of patching, because Helm needs the right to update records anyway. In
// the place of another hub it renews the time of a revision without a result, too: that hub may be at work, and has handoverTime from
// now on to end it.
func (c *Client) Mark(ctx context.Context, mark Mark) error {
	client, err := typedcorev1.NewForConfig(kubeclient.Bounded(ctx, c.target.Config))
	if err != nil {
		return fmt.Errorf("make a client for the workload cluster: %w", err)
	}

	records, name := client.Secrets(c.target.Namespace), key(c.target.Name, mark.Revision)

	record, err := records.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return changedMeanwhile(c.target.Name, mark.Revision)
	}

	if err != nil {
		return classify("read Secret "+name, err, c.redactorFor(values.Values{}))
	}

	if record.Labels[labelOwner] != mark.Owner || record.Labels[labelHub] != mark.From {
		return changedMeanwhile(c.target.Name, mark.Revision)
	}

	record.Labels[labelHub] = mark.To

	if mark.From != "" && Status(record.Labels["status"]).pending() {
		record.Labels["modifiedAt"] = strconv.FormatInt(time.Now().Unix(), 10)
	}

	options := metav1.UpdateOptions{}
	if mark.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}

	_, err = records.Update(ctx, record, options)

	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return changedMeanwhile(c.target.Name, mark.Revision)
	default:
		return classify("write the hub on Secret "+name, err, c.redactorFor(values.Values{}))
	}
}
