package omni

import "strings"

// KindOf shortens a COSI resource type for people: "MachineSetNodes.omni.sidero.dev" becomes "MachineSetNode".
func KindOf(resourceType string) string {
	name, _, _ := strings.Cut(resourceType, ".")

	switch {
	case name == "KernelArgs":
		return name
	case strings.HasSuffix(name, "Patches"):
		return strings.TrimSuffix(name, "es")
	case strings.HasSuffix(name, "Statuses"):
		return strings.TrimSuffix(name, "es")
	default:
		return strings.TrimSuffix(name, "s")
	}
}
