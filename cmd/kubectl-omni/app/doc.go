// Package app is the command line of kubectl omni: a file for each command. Commands read and write through the API with the
// user's own rights; none reads the content of a Secret, and only migrate their metadata. What a command shows is decided by pure
// functions, and golden files hold it.
package app
