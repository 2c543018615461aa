// Package clusteraccess gives access to workload clusters: it turns the kubeconfig in a Secret into connections that
// OmniSecretSync and OmniHelmRelease may use.
//
// Every user who may write a Secret in the controller's namespace can write kubeconfigs, so they are not trusted. The
// steps of an access, each in the file of its name:
//
//   - access gives an object access: parent reads the OmniCluster, secret the kubeconfig, and slot bounds how many
//     reconciles are in one cluster, and in those of one namespace, at the same time;
//   - kubeconfig rebuilds it from an allow-list and refuses fields that would run a program, read a file or skip the
//     check of a certificate, before anything is sent;
//   - cache keeps one Cluster per kubeconfig, with connections of its own (cluster, transport, route); bounds limits
//     what answers may take, scrub removes credentials;
//   - probe checks in the background whether the cluster answers, so that a dead one costs a worker a moment and not a
//     timeout; silence does the same for a cluster that answers but hangs on reads and writes of its storage;
//   - identity determines which cluster answers, and decides whether it is the right one;
//   - cleanup decides what a deletion does there.
package clusteraccess
