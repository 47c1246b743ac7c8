// Package bankpb is the gRPC interface of the quickstart's bank, generated from bank.proto by "make generate".
package bankpb
