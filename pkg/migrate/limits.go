package migrate

import (
	"encoding/json"
	"fmt"

	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/v1alpha1"
	"omni.texashpc.com/omni-cluster-operator/pkg/apis/omni/validation"
)

// checkSize applies the limits of our API server to the spec: definitions store larger ones.
func (c *Converted) checkSize(obj object) {
	var encoded struct {
		Spec json.RawMessage `json:"spec"`
	}

	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, &encoded)
	}

	if err != nil {
		c.refuse("spec", "cannot be written: "+err.Error())

		return
	}

	for _, problem := range validation.ValidateSpecSize(encoded.Spec) {
		c.refuse(problem.Field, problem.ErrorBody())
	}
}

// refuseSameCluster refuses an OmniCluster that is the same cluster in Omni as one before it, as our API server does.
func refuseSameCluster(all []*Converted) {
	holders := map[[3]string]string{}

	for _, c := range all {
		cluster, ok := c.Object.(*v1alpha1.OmniCluster)
		if !ok {
			continue
		}

		claim := [3]string{c.Namespace, cluster.Spec.ConnectionRef.Name, cluster.EffectiveClusterName()}
		if holder, taken := holders[claim]; taken {
			c.refuse("spec.clusterName", fmt.Sprintf("OmniCluster %s is the same cluster in Omni: keep one of the two. "+
				"Set deletePolicy.orphan of the other before you delete it, or the old operator destroys the cluster", holder))
			c.Object = nil

			continue
		}

		holders[claim] = c.Name
	}
}
