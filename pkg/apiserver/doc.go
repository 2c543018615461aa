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
//   - who asks: the front proxy (requestheader, frontproxy), somebody past it (directconnections), nobody (anonymous), what they may
//     do (nameslast);
//   - what happens to a request: admission and parameters of policies (admission, parameters), audit, the
//     wire format (serializer), the end of an answer that its client does not read (answerdeadline);
//   - where the objects are stored, if not in an etcd outside (storage);
//   - what clients ask about the kinds: the scheme and its description (scheme, openapi);
//   - while it runs: readiness, the serving certificate (servingcertificate), a full storage
//     (storagespace);
//   - when it stops: clients are sent away (goaway), the rest is ended (openrequests).
//
// What needs more than a file has a package below:
//
//   - chain: which handlers see a request first;
//   - startup: the hub's rights and an external etcd, before the server is made;
//   - requestbody: what the body of a request may become;
//   - lists: memory for lists, and answers that are encoded one object after the other;
//   - embeddedetcd, snapshot, dataversion: where the objects are stored, copies of it, and its version;
//   - etcdclient: clients of that etcd, or of one outside;
//   - logging: what the log may hold.
package apiserver
