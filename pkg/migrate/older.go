package migrate

import (
	"fmt"
	"strings"
)

// olderGroup is the API group of the first releases of the operator with CRDs. Their objects are not moved. A hub can have
// them beside those of our group, left over from an upgrade, or with an operator of their own that acts on the same clusters.
const olderGroup = "omni.texas-hpc.org"

// olderProblem says what to do about definitions of the older group; empty if there are none.
func olderProblem(s *state) string {
	if len(s.Older) == 0 {
		return ""
	}

	return fmt.Sprintf("the definitions %s are of an older release of the operator with CRDs, which may act on the same clusters; their objects are not moved. "+
		"Do not delete them first: take the steps of \"The older group\" in docs/how-to/migrate.md", strings.Join(s.Older, ", "))
}
