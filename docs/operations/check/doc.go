// Package check has no code but its tests. They hold that the dashboard and the alert rules in the folder above speak of what a program
// with package guard, package redisson and the Prometheus exporter of OpenTelemetry exposes, and that each alert fires when it is to.
package check
