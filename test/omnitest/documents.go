package omnitest

// ClusterDocument is the Cluster document of a template, with an owner's mark.
const ClusterDocument = `kind: Cluster
name: demo
annotations:
  omni.texashpc.com/owner-uid: uid-1
kubernetes:
  version: v1.35.0
talos:
  version: v1.13.2
`

// ControlPlaneDocument is a control plane of one machine.
const ControlPlaneDocument = `---
kind: ControlPlane
machines:
- ` + Machine1 + `
`

// BootstrapSpec is a part of a ControlPlaneDocument that has etcd made from Backup.
const BootstrapSpec = "bootstrapSpec:\n  clusterUUID: 5f0c6f2a-1d0e-4f6e-9a53-0c6a1f3b7d11\n  snapshot: a.snapshot\n"

// Backup is the backup of BootstrapSpec.
const Backup = "5f0c6f2a-1d0e-4f6e-9a53-0c6a1f3b7d11/a.snapshot"

// WorkersDocument is a set of two machines.
const WorkersDocument = `---
kind: Workers
name: workers
machines:
- ` + Machine2 + `
- ` + Machine3 + `
`

// FullTemplate is the three documents together.
const FullTemplate = ClusterDocument + ControlPlaneDocument + WorkersDocument

// ClassDocument returns a worker set that takes its machines from a class.
func ClassDocument(class, size string) string {
	return "---\nkind: Workers\nname: workers\nmachineClass:\n  name: " + class + "\n  size: " + size + "\n"
}
