// Package bankpb is the gRPC interface of the quickstart's bank, generated from bank.proto.
//
// To generate it again, have protoc on PATH and run
//
//	go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
//	go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
//	go generate ./examples/quickstart/bankpb
package bankpb

//go:generate protoc -I ../../.. --go_out=../../.. --go_opt=paths=source_relative --go-grpc_out=../../.. --go-grpc_opt=paths=source_relative examples/quickstart/bankpb/bank.proto
