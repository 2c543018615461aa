package migrate

import (
	"encoding/json"

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
