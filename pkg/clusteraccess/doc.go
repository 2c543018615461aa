// Package clusteraccess is the access to workload clusters: it turns the kubeconfig in a
// Secret into connections that OmniSecretSync and OmniHelmRelease may use.
//
// Whoever may write a Secret in the controller's namespace writes kubeconfigs, so
// they are not trusted. The way in, each station in the file of its name:
//
//   - access lets an object in: parent reads the OmniCluster, secret the kubeconfig, and
//     slot bounds how many runs are in one cluster at the same time;
//   - kubeconfig rebuilds it from an allow-list and refuses what would run a program,
//     read a file or skip the check of a certificate, before anything is sent;
//   - cache keeps one Cluster per kubeconfig, with connections of its own (cluster,
//     transport, route); bounds limits what answers may take, scrub takes credentials out;
//   - probe asks in the background whether the cluster answers, so that a dead one costs a
//     worker a moment and not a timeout; silence does the same for one that answers and
//     hangs on what it stores;
//   - identity says which cluster answers, and decides whether it is the one that was meant;
//   - cleanup decides what a deletion does there.
package clusteraccess
