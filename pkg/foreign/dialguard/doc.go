// Package dialguard decides to which addresses the controller connects: users name
// endpoints of Omni, workload clusters, proxies and chart repositories, and must not
// reach through it what only its own machine or its own network may reach.
//
// What counts is the address of a connection when it is made. A name that leads
// elsewhere at the next look, and a redirect, change nothing.
package dialguard
