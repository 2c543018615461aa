package omni

// clusterDocument is the Cluster of a template, with the mark of testKeys.
const clusterDocument = `kind: Cluster
name: demo
annotations:
  omni.texashpc.com/owner-uid: uid-1
kubernetes:
  version: v1.35.0
talos:
  version: v1.13.2
`

const controlPlaneDocument = `---
kind: ControlPlane
machines:
- ` + machine1 + `
`

const workersDocument = `---
kind: Workers
name: workers
machines:
- ` + machine2 + `
- ` + machine3 + `
`

const fullTemplate = clusterDocument + controlPlaneDocument + workersDocument

func classDocument(class, size string) string {
	return "---\nkind: Workers\nname: workers\nmachineClass:\n  name: " + class + "\n  size: " + size + "\n"
}
