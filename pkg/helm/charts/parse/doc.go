// Package parse reads what chart repositories send and people write: indexes, provenance files and keyrings.
//
// Only the worker processes of package render call it: what a text does to a parser, it does to a process that is
// bounded and has nothing.
package parse
