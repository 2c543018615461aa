// Package permission asks, for admission plugins, whether the user of a request may do what the request has the programs
// do on the user's behalf.
package permission
