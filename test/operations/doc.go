// Package operations has no code but its tests. They hold that the dashboard and the alert rules in docs/operations speak of what a program
// with package guard, package redisson and the Prometheus exporter of OpenTelemetry exposes, and that each alert fires when it is to;
// that the sessions of the pages print what stands there, and that the run-books and the page of Kubernetes say what a real Redis does.
package operations
