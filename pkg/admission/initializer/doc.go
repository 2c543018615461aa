// Package initializer hands our admission plugins what they need: a view of this server's own objects
// and the choices of the command line.
package initializer
