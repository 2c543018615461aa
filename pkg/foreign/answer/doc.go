// Package answer bounds the answers of other servers while they come, before a library
// reads them into memory and decodes them.
//
// What counts is what an answer becomes. A JSON text of some KiB, compressed to a few
// hundred bytes, can become hundreds of MiB of objects, so a Reader estimates that from
// the text as it passes by, without keeping any of it. Answers that are large share
// memory of the process, so that many of them queue.
package answer
