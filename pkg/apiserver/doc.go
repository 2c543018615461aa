// Package apiserver makes the aggregated API server of omni.texashpc.com: the scheme, the OpenAPI
// configuration, the storage of all kinds and the checks that decide when it is ready.
//
// It has no remote side effects: it stores and validates, and calls nothing but its storage and, for
// authentication, authorisation and admission, the hub's kube-apiserver. cmd/apiserver turns flags
// into a Config.
//
// Config and Server are all there is to a running server. Everything else is a step that the generic
// API server of Kubernetes leaves to its users, one file for each:
//
//   - who asks: the front proxy, or nobody (frontproxy), somebody past it (directconnections), and what they may do (nameslast);
//   - what happens to a request: admission (admission), parameters of policies and the wire format (config), what the audit log leaves
//     out (audit), the end of an answer that its client does not read, or of all of them at a stop (answers);
//   - what clients ask about the kinds: their description (openapi);
//   - while it runs: readiness and a full storage (server), the serving certificate (servingcertificate).
//
// What needs more than a file has a package below:
//
//   - chain: which handlers see a request first;
//   - startup: the hub's rights and an external etcd, before the server is made; clients of an etcd;
//   - requestbody: what the body of a request may become;
//   - lists: memory for lists, and answers that are encoded one object after the other;
//   - logging: what the log of the process may hold;
//   - embeddedetcd, snapshot: where the objects are stored, its version, and copies of it.
package apiserver
