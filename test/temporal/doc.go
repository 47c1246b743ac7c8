// Package temporal plays the table of package jobtest on a real Temporal server, in the test's process. That server takes minutes to compile:
// make services runs it.
package temporal
